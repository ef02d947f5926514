"""Makes a release: wheel and sdist with the same bytes each time, what they pull in (SBOM), and checksums of all."""
