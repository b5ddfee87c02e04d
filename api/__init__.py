"""The Python API of Lanikai; `import lanikai` has its public names."""
