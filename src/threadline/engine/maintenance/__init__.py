"""Whole stores: copied, derived anew, checked and dumped."""
