// One host's end of a message node (hdl/traffic/message_node.py): commands come from a ring that Python writes,
// events go to one that it reads, over DPI (messages.cpp). Both are passed on as they are, two words of 64 bits each.
module messages #(
    parameter COMMAND_BITS = 87,
    parameter EVENT_BITS = 98
) (
    input clk,
    input [15:0] node,
    output reg command_valid,
    input command_ready,
    output reg [COMMAND_BITS-1:0] command,
    input event_valid,
    input [EVENT_BITS-1:0] event_payload,
    output reg room,
    output reg told  // the cycle after an event that Python is told of, and after `room`
);
  // Bit 0: a command was taken; bit 1: there is room again that was waited for.
  import "DPI-C" function byte unsigned lanikai_messages_take(
    input int unsigned node, output longint unsigned low, output longint unsigned high
  );
  import "DPI-C" function bit lanikai_messages_tell(input longint unsigned low, input longint unsigned high);

  reg [63:0] low, high;
  reg [7:0] taken;
  reg heard;
  initial command_valid = 1'b0;
  initial room = 1'b0;
  initial told = 1'b0;
  always @(posedge clk) begin
    if (!command_valid || command_ready) begin
      taken = lanikai_messages_take({16'd0, node}, low, high);
      if (command_valid != taken[0]) command_valid <= taken[0];
      if (taken[0]) command <= COMMAND_BITS'({high, low});
      if (room != taken[1]) room <= taken[1];
    end else if (room) room <= 1'b0;
    heard = 1'b0;
    if (event_valid) heard = lanikai_messages_tell(64'(event_payload), 64'(event_payload >> 64));
    if (told != (heard | room)) told <= heard | room;
  end
endmodule
