"""Adversarial robustness by private texts: networks, certified training, a genetic attacker, curves of N_w and S_w."""
