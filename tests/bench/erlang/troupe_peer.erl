%% troupe_peer.erl - ping-pong and count as Erlang does them, to be compared within one run of tests/bench/figures.sh.
%%   erl +S N:N -noshell -pa DIR -run troupe_peer main WORKLOAD COUNT
%% Prints messages per second, from the first send to the last receipt.
%% (A module called peer is part of OTP.)
-module(troupe_peer).
-export([main/1]).

main([Workload, Count]) ->
    N = list_to_integer(Count),
    Start = erlang:monotonic_time(nanosecond),
    Messages = run(Workload, N),
    Nanoseconds = erlang:monotonic_time(nanosecond) - Start,
    io:format("~B~n", [Messages * 1000000000 div Nanoseconds]),
    halt(0).

run("pingpong", N) ->
    Main = self(),
    spawn(fun() ->
        Me = self(),
        Pong = spawn(fun() -> pong(Me) end),
        ping(Pong, N),
        Main ! done
    end),
    receive done -> ok end,
    2 * N;
run("count", N) ->
    Main = self(),
    Counter = spawn(fun() -> counter(N), Main ! done end),
    spawn(fun() -> produce(Counter, N) end),
    receive done -> ok end,
    N.

ping(_, 0) -> ok;
ping(Pong, N) ->
    Pong ! N,
    receive _ -> ping(Pong, N - 1) end.

pong(Ping) ->
    receive N -> Ping ! N, pong(Ping) end.

counter(0) -> ok;
counter(N) ->
    receive _ -> counter(N - 1) end.

produce(_, 0) -> ok;
produce(Counter, N) ->
    Counter ! N,
    produce(Counter, N - 1).
