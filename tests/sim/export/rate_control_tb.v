// The unit of `lanikai verilog rate-control --set preset=tiny`: a flow with IDT 10 that has tokens all the time.
`timescale 1ns / 1ps
module rate_control_tb;
  reg clk = 0, rst = 1;
  always #5 clk = ~clk;

  reg [15:0] now = 100;
  reg write_idt = 0, enqueue = 0, dispatched = 0;
  wire offered, ready;
  wire [1:0] flow;
  integer packets = 0, wrong = 0, last = 0;

  lanikai_rate_control unit (
      .clk(clk), .rst(rst), .rtc(now),
      .select(2'd2), .write_idt(write_idt), .write_ndt(1'b0), .write_ticks(16'd10),
      .enqueue__payload(2'd2), .enqueue__valid(enqueue),
      .clear__payload(2'd0), .clear__valid(1'b0),
      .dispatched__payload({1'b0, 2'd2}), .dispatched__valid(dispatched), .dispatched__ready(ready),
      .dispatch__valid(offered), .dispatch__flow(flow)
  );

  always @(negedge clk) begin
    now <= now + 1;
    dispatched <= offered & ~dispatched;
    if (offered & ~dispatched) begin
      if (flow != 2) wrong <= wrong + 1;
      if (packets > 0 && now - last != 10) wrong <= wrong + 1;
      last <= now;
      packets <= packets + 1;
    end
  end

  initial begin
    repeat (4) @(negedge clk);
    rst = 0;
    repeat (8) @(negedge clk);
    write_idt = 1;
    @(negedge clk);
    write_idt = 0;
    repeat (8) @(negedge clk);
    enqueue = 1;
    @(negedge clk);
    enqueue = 0;
    repeat (200) @(negedge clk);
    if (packets >= 19 && packets <= 21 && wrong == 0) $display("PASS");
    else $display("FAIL: %0d packets, %0d wrong", packets, wrong);
    $finish;
  end
endmodule
