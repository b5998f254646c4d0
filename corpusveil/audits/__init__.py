"""What refutes a guarantee: audits of words, of documents and of their lengths, by exact laws or by samples."""

PAIRS, WORDS, LEVEL = 14, 192, 0.05
"""The number of pairs compared by samples, of words compared by laws, and the chance of refuting a true guarantee.

They stand here, without an import, because listings of settings show them.
"""
