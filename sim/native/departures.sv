// The head flit of a message on its sender's link: told over DPI (messages.cpp), if anybody wants to know.
module departures (
    input clk,
    input [15:0] node,
    input head,
    input [3:0] vl,
    input [31:0] now
);
  import "DPI-C" function void lanikai_messages_left(
    input int unsigned node, input int unsigned vl, input int unsigned now
  );
  always @(posedge clk) if (head) lanikai_messages_left({16'd0, node}, {28'd0, vl}, now);
endmodule
