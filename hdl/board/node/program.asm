# The card's program: moves messages from host memory through the network and back, and says how long each took.
#
# A doorbell starts it. The names in capitals are registers, events and places (program.py).
#
# s0  registers of the card        s6   sum of the times
# s1  its SRAM                     s7   shortest time
# s2  messages still to be sent    s8   longest time
# s3  bytes of a message           s9   messages with a wrong header
# s4  place in the area            s10  start of the first message
# s5  bytes of the area            s11  start of this message

start:
    li s0, REGISTERS
    li s1, SRAM
    li s5, AREA_BYTES

idle:
    lw t0, DOORBELL_QUEUE(s0)
    bgez t0, idle                   # bit 31: there is an entry

    # The command: the header goes where packets are sent from.
    li a3, 0
    li a0, COMMAND
    li a1, SRAM_PACKET
    li a2, HEADER_BYTES
    jal ra, move
    li a0, COMMAND_COUNTS
    li a1, SRAM_WORDS
    li a2, 8
    jal ra, move
    lw s2, SRAM_WORDS(s1)
    lw s3, SRAM_BYTES(s1)
    sw s2, RESULT_MESSAGES(s1)
    li s4, 0
    li s6, 0
    li s7, -1
    li s8, 0
    li s9, 0
    lw s10, RTC(s0)

message:
    lw s11, RTC(s0)
    li a3, 0
    li a0, SOURCE
    add a0, a0, s4
    li a1, SRAM_PACKET_PAYLOAD
    mv a2, s3
    jal ra, move

    li t0, SRAM_RECEIVE
    sw t0, RECEIVE_ADDRESS(s0)
    sw s5, RECEIVE_CONTROL(s0)
    li t0, SRAM_PACKET
    sw t0, SEND_ADDRESS(s0)
    sw s3, SEND_CONTROL(s0)         # VL 0
    li t0, EVENT_SEND
    jal ra, wait
    li t0, EVENT_RECEIVE
    jal ra, wait

    li a3, TO_HOST
    li a0, DESTINATION
    add a0, a0, s4
    li a1, SRAM_RECEIVE_PAYLOAD
    mv a2, s3
    jal ra, move
    lw t2, RTC(s0)

    # The time of this message.
    sub t0, t2, s11
    add s6, s6, t0
    bgeu t0, s7, not_shortest
    mv s7, t0
not_shortest:
    bgeu s8, t0, not_longest
    mv s8, t0
not_longest:

    # The header: flow, length and sequence are as they were sent. A route is used up on the way.
    lw t0, SRAM_PACKET_FLOW(s1)
    lw t1, SRAM_RECEIVE_FLOW(s1)
    bne t0, t1, wrong
    lw t0, SRAM_PACKET_SEQUENCE(s1)
    lw t1, SRAM_RECEIVE_SEQUENCE(s1)
    beq t0, t1, right
wrong:
    addi s9, s9, 1
right:

    # The next sequence number, and the next place, at the start again where the message would leave the area.
    lw t0, SRAM_PACKET_SEQUENCE(s1)
    li t1, ONE_SEQUENCE
    add t0, t0, t1
    sw t0, SRAM_PACKET_SEQUENCE(s1)
    add s4, s4, s3
    add t0, s4, s3
    bgeu s5, t0, inside
    li s4, 0
inside:
    addi s2, s2, -1
    bnez s2, message

    sub t2, t2, s10
    sw t2, RESULT_SPAN_CYCLES(s1)
    sw s7, RESULT_LEAST_CYCLES(s1)
    sw s8, RESULT_MOST_CYCLES(s1)
    sw s6, RESULT_SUM_CYCLES(s1)
    sw s9, RESULT_WRONG_HEADERS(s1)
    lw t0, CRC_ERRORS(s0)
    sw t0, RESULT_CRC_ERRORS(s1)
    lw t0, LENGTH_ERRORS(s0)
    sw t0, RESULT_LENGTH_ERRORS(s1)
    li a3, TO_HOST
    li a0, RESULT
    li a1, SRAM_WORDS
    li a2, RESULT_BYTES
    jal ra, move
    li t0, 1
    sw t0, HOST_INTERRUPT(s0)
    j idle

# Moves a2 bytes between a0 in host memory and a1 in SRAM, in the direction a3.
move:
    sw a0, HOST_DMA_HOST(s0)
    sw a1, HOST_DMA_SRAM(s0)
    or a2, a2, a3
    sw a2, HOST_DMA_CONTROL(s0)
    li t0, EVENT_HOST_DMA

# Waits for the event t0, and clears it.
wait:
    lw t1, ISR(s0)
    and t1, t1, t0
    beqz t1, wait
    sw t0, ISR(s0)
    ret
