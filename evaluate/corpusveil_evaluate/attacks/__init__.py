"""What an attacker recovers: words, sentences, whole documents, attributes; audits of guarantees."""
