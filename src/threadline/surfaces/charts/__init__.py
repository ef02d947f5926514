"""Draws charts: as SVG, in a terminal, as a specification for Vega-Lite."""
