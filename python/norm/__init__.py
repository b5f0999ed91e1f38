"""Support for the `norm` dialect: the NumPy oracle, its error promise and a
driver for the command line tools."""
