%% Erlang distribution between two nodes on loopback: tells of 100 B, 1 KiB and 64 KiB, and round trips.
%% erl -name a@127.0.0.1 -eval 'troupe_far:sink().'; erl -name b@127.0.0.1 -eval "troupe_far:main('a@127.0.0.1', N)."
-module(troupe_far).
-export([sink/0, main/2]).

sink() -> register(sink, self()), loop(0).
loop(N) ->
    receive
        {reset, From} -> From ! done, loop(0);
        {all, From, Want} -> rest(N, Want, From);
        {echo, From, B} -> From ! {echoed, B}, loop(N);
        B when is_binary(B) -> loop(N + 1)
    end.
rest(N, N, From) -> From ! done, loop(0);
rest(N, Want, From) -> receive B when is_binary(B) -> rest(N + 1, Want, From) end.

main(Node, N) ->
    connect(Node, 100),
    tells(Node, "rate_100", 100, N div 20),
    tells(Node, "rate_1024", 1024, N div 50),
    tells(Node, "rate_65536", 65536, N div 500),
    T = lists:sort(trips(Node, binary:copy(<<1>>, 100), 21000, [])),
    io:format("erlang remote rtt_p50 ~.2f us~n", [lists:nth(10000, T) / 1000]),
    io:format("erlang remote rtt_p99 ~.2f us~n", [lists:nth(19800, T) / 1000]),
    rpc:cast(Node, erlang, halt, []),
    timer:sleep(100),
    halt(0).

connect(_, 0) -> halt(1);
connect(Node, K) ->
    case rpc:call(Node, erlang, whereis, [sink]) of
        P when is_pid(P) -> ok;
        _ -> timer:sleep(50), connect(Node, K - 1)
    end.

tells(Node, Param, Size, N) ->
    S = {sink, Node},
    B = binary:copy(<<1>>, Size),
    S ! {reset, self()}, receive done -> ok end,
    T = erlang:monotonic_time(nanosecond),
    send(S, B, N),
    S ! {all, self(), N}, receive done -> ok end,
    io:format("erlang remote ~s ~.1f messages/s~n", [Param, N * 1.0e9 / (erlang:monotonic_time(nanosecond) - T)]).
send(_, _, 0) -> ok;
send(S, B, N) -> S ! B, send(S, B, N - 1).

trips(_, _, 0, T) -> lists:sublist(T, 20000);
trips(Node, B, N, T) ->
    Start = erlang:monotonic_time(nanosecond),
    {sink, Node} ! {echo, self(), B},
    receive {echoed, _} -> ok end,
    trips(Node, B, N - 1, [erlang:monotonic_time(nanosecond) - Start | T]).
