// One host's memory: bytes of a numpy array in the same process, reached over DPI (hostmem.cpp).
// The ports are those of HostMemorySignature (sim/pci.py); `node` chooses the array.
module hostmem #(
    parameter BYTES = 4
) (
    input clk,
    input [15:0] node,
    input [31:0] address,
    input write,
    input [BYTES-1:0] strobe,
    input [8*BYTES-1:0] write_data,
    input read,
    output reg [8*BYTES-1:0] read_data,
    output reg hit
);
  import "DPI-C" function longint unsigned lanikai_memory_read(
    input int unsigned node, input int unsigned address, input int unsigned bytes
  );
  import "DPI-C" function bit lanikai_memory_write(
    input int unsigned node, input int unsigned address, input int unsigned strobe,
    input longint unsigned data
  );

  always @(posedge clk) begin
    if (read)
      read_data <= (8*BYTES)'(lanikai_memory_read({16'd0, node}, address, BYTES));
    if (write)
      hit <= lanikai_memory_write({16'd0, node}, address, 32'(strobe), 64'(write_data));
    else if (hit)
      hit <= 1'b0;
  end
endmodule
