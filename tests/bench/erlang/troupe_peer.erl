%% troupe_peer.erl - the workloads of tests/bench/bench as Erlang does them, to be compared within one run of
%% tests/bench/figures.sh. One workload for each virtual machine:
%%   erl +S N:N +P 2500000 -noshell -pa DIR -run troupe_peer main WORKLOAD [COUNT]
%% Prints lines `erlang WORKLOAD PARAM VALUE UNIT`. COUNT means what --count means to the bench.
%% (A module called peer is part of OTP.)
-module(troupe_peer).
-export([main/1]).
-compile([inline, {inline_size, 100}]).

main([Workload]) -> main([Workload, "0"]);
main([Workload, Count]) ->
    put(workload, Workload),
    run(Workload, list_to_integer(Count)),
    halt(0).

report(Param, Value, Unit) ->
    io:format("erlang ~s ~s ~.6g ~s~n", [get(workload), Param, Value * 1.0, Unit]).

now_ns() -> erlang:monotonic_time(nanosecond).

rate(Count, Start, Unit) -> report("rate", Count * 1.0e9 / (now_ns() - Start), Unit).

number(0, Default) -> Default;
number(Count, _) -> Count.

%% kB of a line of /proc/self/status
status(Key) ->
    {ok, Text} = file:read_file("/proc/self/status"),
    {match, [Number]} = re:run(Text, Key ++ ":\\s+(\\d+)", [{capture, all_but_first, list}]),
    list_to_integer(Number).

%% What is measured runs in processes of its own; the first process waits.
wait() -> receive {finished, Result} -> Result end.

run("pingpong", Count) ->
    pair(fun ping/3, fun pong/1, number(Count, 5000000));
run("bigpayload", Count) ->
    Bytes = binary:copy(<<"x">>, 1024),
    pair(fun(Pong, N, Main) -> payload_ping(Pong, N, Main, Bytes) end,
         fun(Ping) -> payload_pong(Ping, Bytes) end, number(Count, 2000000));
run("ring", Count) ->
    Hops = number(Count, 5000000),
    Main = self(),
    First = spawn(fun() -> receive {next, Next} -> ring(Next, Main) end end),
    Last = lists:foldl(fun(_, Next) -> spawn(fun() -> ring(Next, Main) end) end, First,
                       lists:seq(1, 502)),
    First ! {next, Last},
    Start = now_ns(),
    First ! Hops,
    wait(),
    rate(Hops, Start, "hops/s");
run("latency", Count) ->
    N = number(Count, 2000000),
    Main = self(),
    Bins = counters:new(200001, []), % of one nanosecond
    spawn(fun() ->
        Me = self(),
        Pong = spawn(fun() -> pong(Me) end),
        timed_ping(Pong, N, Bins),
        Main ! {finished, ok}
    end),
    wait(),
    report("rtt_p50", percentile(Bins, N * 0.5), "ns"),
    report("rtt_p99", percentile(Bins, N * 0.99), "ns"),
    report("rtt_p99.9", percentile(Bins, N * 0.999), "ns");
run("count", Count) -> producers(1, number(Count, 20000000));
run("fanin", Count) -> producers(100, number(Count, 10000000) div 100);
run("forkjoin_throughput", Count) ->
    Each = number(Count, 6000000) div 60,
    Main = self(),
    Driver = spawn(fun() ->
        Me = self(),
        Forks = [spawn(fun() -> fork(Each, Me) end) || _ <- lists:seq(1, 60)],
        receive go -> ok end,
        drive(Forks, Each),
        gather(60, Main)
    end),
    Start = now_ns(),
    Driver ! go,
    wait(),
    rate(60 * Each, Start, "messages/s");
run("big", Count) ->
    Pings = max(1, number(Count, 4000000) div 2000),
    Main = self(),
    Gatherer = spawn(fun() -> gather(1000, Main) end),
    Pids = [spawn(fun() ->
        receive {start, All} -> big(All, Pings, Gatherer, I * 2654435761 rem 16#ffffffff) end
    end) || I <- lists:seq(1, 1000)],
    All = list_to_tuple(Pids),
    Start = now_ns(),
    [Pid ! {start, All} || Pid <- Pids],
    wait(),
    rate(2 * 1000 * Pings, Start, "messages/s");
run("chameneos", Count) ->
    Meetings = number(Count, 2000000),
    Main = self(),
    Mall = spawn(fun() -> mall(Meetings, Main) end),
    Creatures = [spawn(fun() -> receive go -> come(Mall, I rem 3) end end) || I <- lists:seq(1, 100)],
    Start = now_ns(),
    [Pid ! go || Pid <- Creatures],
    wait(),
    rate(Meetings, Start, "meetings/s");
run("create", Count) ->
    N = number(Count, 1000000),
    Main = self(),
    Parent = spawn(fun() ->
        process_flag(message_queue_data, off_heap), % five times as fast here as the default
        erlang:garbage_collect(),
        Before = status("VmRSS"),
        Me = self(),
        Start = now_ns(),
        Children = create(N, Me, []),
        answers(N),
        Nanoseconds = now_ns() - Start,
        timer:sleep(300),
        Main ! {finished, {Nanoseconds, (status("VmRSS") - Before) * 1024 / N}},
        receive never -> Children end
    end),
    {Nanoseconds, Bytes} = wait(),
    true = is_process_alive(Parent),
    report("rate", N * 1.0e9 / Nanoseconds, "actors/s"),
    report("bytes_per_live_actor", Bytes, "bytes"),
    report("actors_per_gib", 1073741824 / Bytes, "actors");
run("spawn_tree", Count) ->
    Leaves = power_of_ten(number(Count, 1000000), 1),
    Me = self(),
    Sum = Leaves * (Leaves - 1) div 2,
    Start = now_ns(),
    spawn(fun() -> tree(Me, 0, Leaves) end),
    receive Sum -> ok end,
    report("time", (now_ns() - Start) / 1.0e9, "s").

pair(Ping, Pong, N) ->
    Main = self(),
    Start = now_ns(),
    spawn(fun() ->
        Me = self(),
        Other = spawn(fun() -> Pong(Me) end),
        Ping(Other, N, Main)
    end),
    wait(),
    rate(2 * N, Start, "messages/s").

ping(_, 0, Main) -> Main ! {finished, ok};
ping(Pong, N, Main) ->
    Pong ! N,
    receive _ -> ping(Pong, N - 1, Main) end.

pong(Ping) ->
    receive N -> Ping ! N, pong(Ping) end.

payload_ping(_, 0, Main, _) -> Main ! {finished, ok};
payload_ping(Pong, N, Main, Bytes) ->
    Pong ! binary:copy(Bytes),
    receive _ -> payload_ping(Pong, N - 1, Main, Bytes) end.

payload_pong(Ping, Bytes) ->
    receive _ -> Ping ! binary:copy(Bytes), payload_pong(Ping, Bytes) end.

timed_ping(_, 0, _) -> ok;
timed_ping(Pong, N, Bins) ->
    Sent = now_ns(),
    Pong ! N,
    receive _ -> ok end,
    counters:add(Bins, min(200001, now_ns() - Sent + 1), 1),
    timed_ping(Pong, N - 1, Bins).

percentile(Bins, Target) -> percentile(Bins, 1, Target).
percentile(Bins, I, Left) ->
    case Left - counters:get(Bins, I) of
        Less when Less =< 0 -> I - 1;
        More -> percentile(Bins, I + 1, More)
    end.

ring(Next, Main) ->
    receive
        {next, _} -> ring(Next, Main);
        0 -> Main ! {finished, ok}, ring(Next, Main);
        N -> Next ! N - 1, ring(Next, Main)
    end.

producers(Count, Each) ->
    Main = self(),
    Counter = spawn(fun() -> counter(Count * Each, Main) end),
    Pids = [spawn(fun() -> receive go -> produce(Counter, Each) end end) || _ <- lists:seq(1, Count)],
    Start = now_ns(),
    [Pid ! go || Pid <- Pids],
    wait(),
    rate(Count * Each, Start, "messages/s"),
    report("peak_rss", status("VmHWM") / 1024, "MiB").

counter(0, Main) -> Main ! {finished, ok};
counter(N, Main) ->
    receive _ -> counter(N - 1, Main) end.

produce(_, 0) -> ok;
produce(Counter, N) ->
    Counter ! N,
    produce(Counter, N - 1).

gather(0, Main) -> Main ! {finished, ok};
gather(N, Main) -> receive done -> gather(N - 1, Main) end.

fork(0, Driver) -> Driver ! done;
fork(N, Driver) -> receive _ -> fork(N - 1, Driver) end.

drive(_, 0) -> ok;
drive(Forks, N) ->
    drive_each(Forks, N),
    drive(Forks, N - 1).

drive_each([], _) -> ok;
drive_each([Fork | Forks], N) ->
    Fork ! N,
    drive_each(Forks, N).

big(All, Left, Gatherer, Random) ->
    Next = xorshift(Random),
    element(Next rem 1000 + 1, All) ! {ping, self()},
    big_wait(All, Left, Gatherer, Next).

big_wait(All, Left, Gatherer, Random) ->
    receive
        {ping, From} -> From ! pong, big_wait(All, Left, Gatherer, Random);
        pong when Left =:= 1 -> Gatherer ! done, big_serve();
        pong -> big(All, Left - 1, Gatherer, Random)
    end.

big_serve() ->
    receive {ping, From} -> From ! pong, big_serve() end.

xorshift(A) ->
    B = (A bxor (A bsl 13)) band 16#ffffffff,
    C = B bxor (B bsr 17),
    (C bxor (C bsl 5)) band 16#ffffffff.

mall(0, Main) -> mall_end(100, Main);
mall(Left, Main) ->
    receive {A, _} ->
        receive {B, Colour} ->
            A ! {met, B, Colour},
            mall(Left - 1, Main)
        end
    end.

mall_end(0, Main) -> Main ! {finished, ok};
mall_end(Left, Main) -> receive {_, _} -> mall_end(Left - 1, Main) end.

come(Mall, Colour) ->
    Mall ! {self(), Colour},
    receive
        {met, Other, Theirs} ->
            Changed = mix(Colour, Theirs),
            Other ! {change, Changed},
            come(Mall, Changed);
        {change, Changed} ->
            come(Mall, Changed)
    end.

mix(Same, Same) -> Same;
mix(A, B) -> 3 - A - B.

create(0, _, Children) -> Children;
create(N, Parent, Children) ->
    Child = spawn(fun child/0),
    Child ! {Parent, N},
    create(N - 1, Parent, [Child | Children]).

child() ->
    receive {Parent, N} -> Parent ! N, child() end.

answers(0) -> ok;
answers(N) -> receive _ -> answers(N - 1) end.

power_of_ten(Most, Power) when Power * 10 > Most -> Power;
power_of_ten(Most, Power) -> power_of_ten(Most, Power * 10).

tree(Parent, First, 1) -> Parent ! First;
tree(Parent, First, Count) ->
    Me = self(),
    tree_spawn(Me, First, Count div 10, 10),
    Parent ! tree_sum(10, 0).

tree_spawn(_, _, _, 0) -> ok;
tree_spawn(Parent, First, Count, Left) ->
    spawn(fun() -> tree(Parent, First, Count) end),
    tree_spawn(Parent, First + Count, Count, Left - 1).

tree_sum(0, Sum) -> Sum;
tree_sum(Left, Sum) -> receive N -> tree_sum(Left - 1, Sum + N) end.
