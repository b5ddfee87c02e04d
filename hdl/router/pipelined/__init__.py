"""The router's stages with a register between every two choices (`RouterConfig.pipelined`)."""
