// The card of `lanikai verilog nic --set preset=tiny`: registers and SRAM read and written over AXI4-Lite.
`timescale 1ns / 1ps
module nic_tb;
  reg clk = 0, rst = 1;
  always #5 clk = ~clk;

  reg [22:0] awaddr = 0, araddr = 0;
  reg [31:0] wdata = 0;
  reg awvalid = 0, wvalid = 0, arvalid = 0;
  wire awready, wready, bvalid, arready, rvalid;
  wire [1:0] bresp, rresp;
  wire [31:0] rdata;
  integer wrong = 0;

  lanikai_nic card (
      .clk(clk), .rst(rst),
      .host__awaddr(awaddr), .host__awprot(3'b0), .host__awvalid(awvalid), .host__awready(awready),
      .host__wdata(wdata), .host__wstrb(4'hf), .host__wvalid(wvalid), .host__wready(wready),
      .host__bresp(bresp), .host__bvalid(bvalid), .host__bready(1'b1),
      .host__araddr(araddr), .host__arprot(3'b0), .host__arvalid(arvalid), .host__arready(arready),
      .host__rdata(rdata), .host__rresp(rresp), .host__rvalid(rvalid), .host__rready(1'b1),
      .rx__payload(35'b0), .rx__valid(1'b0), .rx__restart(1'b0),
      .tx__credit_vl(1'b0), .tx__credit_valid(1'b0), .tx__credit_restart(1'b0),
      .dma__awready(1'b0), .dma__wready(1'b0), .dma__arready(1'b0),
      .dma__bid(2'b0), .dma__bresp(2'b0), .dma__bvalid(1'b0),
      .dma__rid(2'b0), .dma__rdata(32'b0), .dma__rresp(2'b0), .dma__rlast(1'b0), .dma__rvalid(1'b0),
      .processor__request(58'b0)
  );

  task write(input [22:0] address, input [31:0] data);
    begin
      @(negedge clk);
      awaddr = address; wdata = data; awvalid = 1; wvalid = 1;
      while (awvalid | wvalid) begin : handshake
        reg a, w;
        #4 a = awready; w = wready;
        @(negedge clk);
        if (a) awvalid = 0;
        if (w) wvalid = 0;
      end
      while (!bvalid) @(negedge clk);
    end
  endtask

  task read(input [22:0] address, input [31:0] expected);
    begin : body
      reg a;
      @(negedge clk);
      araddr = address; arvalid = 1; a = 0;
      while (!a) begin
        #4 a = arready;
        @(negedge clk);
      end
      arvalid = 0;
      while (!rvalid) @(negedge clk);
      if (rdata !== expected) begin
        wrong = wrong + 1;
        $display("FAIL: %h at %h, not %h", rdata, address, expected);
      end
    end
  endtask

  initial begin
    repeat (4) @(negedge clk);
    rst = 0;
    read(23'h100000, 32'h4c4e0001);  // ID
    write(23'h100008, 32'h1);        // HOST_IMR: bit 0 is stored, no other one is there
    read(23'h100008, 32'h1);
    write(23'h100008, 32'hfffffffe);
    read(23'h100008, 32'h0);
    write(23'h000040, 32'h12345678); // SRAM
    write(23'h000044, 32'h9abcdef0);
    read(23'h000040, 32'h12345678);
    read(23'h000044, 32'h9abcdef0);
    if (wrong == 0) $display("PASS");
    $finish;
  end
  initial begin
    #100000 $display("FAIL: no answer");
    $finish;
  end
endmodule
