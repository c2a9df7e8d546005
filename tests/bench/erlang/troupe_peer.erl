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
    Self = self(),
    Pong = spawn_link(fun() -> pong() end),
    Ping = spawn_link(fun() -> ping(Pong, N), Self ! done end),
    receive done -> ok end,
    unlink(Ping), unlink(Pong), exit(Pong, kill),
    2 * N;
run("count", N) ->
    Self = self(),
    Counter = spawn_link(fun() -> counter(N, Self) end),
    spawn_link(fun() -> produce(Counter, N) end),
    receive done -> ok end,
    N.

ping(_, 0) -> ok;
ping(Pong, N) ->
    Pong ! {self(), N},
    receive N -> ping(Pong, N - 1) end.

pong() ->
    receive {From, N} -> From ! N, pong() end.

counter(0, Owner) -> Owner ! done;
counter(N, Owner) ->
    receive {tick, _} -> counter(N - 1, Owner) end.

produce(_, 0) -> ok;
produce(Counter, N) ->
    Counter ! {tick, N},
    produce(Counter, N - 1).
