"""What refutes a guarantee: audits of words, of documents and of their lengths, by exact laws or by samples."""
