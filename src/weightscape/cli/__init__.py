"""The command line: `weightscape demo | fit | predict | report | data`."""
