"""Words everyone speaks: errors, registry, random streams, records and protocols."""
