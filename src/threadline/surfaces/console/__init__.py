"""The console: pages for people who look at the data and change it, made of the same operations as every surface."""
