"""The receive side of the adapter: from whole packets to bytes in posted buffers and completions."""
