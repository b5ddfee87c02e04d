// Two routers in a row, of `lanikai verilog network --set topology=chain --set preset=lanai4 --set restart=false`:
// a packet from node 0 on router 0 to node 1 on router 1.
`timescale 1ns / 1ps
module network_tb;
  reg clk = 0, rst = 1;
  always #5 clk = ~clk;

  reg [66:0] payload = 0;
  reg valid = 0;
  wire [66:0] there, back;
  wire there_valid, back_valid;
  wire [31:0] dropped;
  integer sent = 0, came = 0, wrong = 0;

  lanikai_network network (
      .clk(clk), .rst(rst),
      .node0_rx__payload(payload), .node0_rx__valid(valid),
      .node0_tx__payload(back), .node0_tx__valid(back_valid),
      .node0_tx__credit_vl(1'b0), .node0_tx__credit_valid(back_valid),
      .node1_rx__payload(67'b0), .node1_rx__valid(1'b0),
      .node1_tx__payload(there), .node1_tx__valid(there_valid),
      .node1_tx__credit_vl(1'b0), .node1_tx__credit_valid(there_valid),
      .dropped(dropped)
  );

  function [66:0] flit(input integer number);
    begin
      // Kind 0, service level 0; the route is port 1 of router 0, then port 0 of router 1, 4 bits a hop.
      flit = {number == 3, number == 0, 1'b0, 64'h0123456789abcd00 + number};
      if (number == 0) flit[63:0] = 64'h0000000000000100;
    end
  endfunction

  always @(posedge clk) begin
    if (there_valid) begin
      // The first flit has its route used up.
      if (there !== (came == 0 ? {3'b010, 64'h0} : flit(came))) begin
        wrong <= wrong + 1;
        $display("FAIL: flit %0d is %h", came, there);
      end
      came <= came + 1;
    end
    if (back_valid) begin
      wrong <= wrong + 1;
      $display("FAIL: node 0 has got %h", back);
    end
  end

  initial begin
    repeat (4) @(negedge clk);
    rst = 0;
    @(negedge clk);
    for (sent = 0; sent < 4; sent = sent + 1) begin
      payload = flit(sent);
      valid = 1;
      @(negedge clk);
    end
    valid = 0;
    repeat (60) @(negedge clk);
    if (came == 4 && wrong == 0 && dropped == 0) $display("PASS");
    else $display("FAIL: %0d flits, %0d dropped", came, dropped);
    $finish;
  end
endmodule
