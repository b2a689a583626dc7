"""BOSHNAS (Tuli et al., 2022): Bayesian optimisation with second-order gradients and a heteroscedastic surrogate."""
