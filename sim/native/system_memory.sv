// One host's memory for a bus of 128 bits: bytes of a numpy array in the same process, reached over DPI (hostmem.cpp).
// The ports are those of SystemMemorySignature (sim/models/system_bus.py); `node` chooses the array.
module system_memory (
    input clk,
    input [15:0] node,
    input read,
    input [31:0] read_address,
    output reg [127:0] read_data,
    input write,
    input [31:0] write_address,
    input [15:0] strobe,
    input [127:0] write_data
);
  import "DPI-C" function longint unsigned lanikai_memory_read(
    input int unsigned node, input int unsigned address, input int unsigned bytes
  );
  import "DPI-C" function bit lanikai_memory_write(
    input int unsigned node, input int unsigned address, input int unsigned strobe,
    input longint unsigned data
  );

  reg low, high;  // whether a word is watched: nobody asks
  always @(posedge clk) begin
    if (read)
      read_data <= {
        lanikai_memory_read({16'd0, node}, read_address + 32'd8, 32'd8),
        lanikai_memory_read({16'd0, node}, read_address, 32'd8)
      };
    if (write) begin
      low = lanikai_memory_write({16'd0, node}, write_address, 32'(strobe[7:0]), write_data[63:0]);
      high = lanikai_memory_write({16'd0, node}, write_address + 32'd8, 32'(strobe[15:8]), write_data[127:64]);
    end
  end
endmodule
