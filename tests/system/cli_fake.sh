#!/bin/bash
# cli_fake.sh - the client alone, against canned replies: output formats, exit codes, broken nodes.
. "$(dirname "$0")/lib.sh"
test_begin
fake=$build/tests/system/ctl_fake
[ -x "$fake" ] || { fail "build" "no program at $fake"; test_end; }
A=troupe.tcp://demo@10.0.0.1:2552 B=troupe.tcp://demo@10.0.0.2:2552 C=troupe.tcp://demo@10.0.0.3:2552

member() { # address uid reachable up-number roles
    printf '{"node":"%s","nodeUid":"%s","status":"Up","roles":[%s],"reachable":%s,"upNumber":%s,' "$1" "$2" "$5" "$3" "$4"
    printf '"upSince":"2026-11-20T12:01:46.000Z","ageMs":192000,"rttMs":0.31,"phi":0.2,"appVersion":"0.1.0","troupeVersion":%s}' "${6:-\"0.9.1\"}"
}
members="{\"ok\":true,\"selfNode\":\"$A\",\"selfStatus\":\"Up\",\"leader\":\"$A\",\"oldest\":\"$A\",\"oldestPerRole\":{},"
members+="\"leaderPerRole\":{\"backend\":\"$B\"},\"members\":[$(member $A 5700353371690149461 true 1 '"backend","seed"'),"
members+="$(member $B 18446744073709551615 true 2 '"backend"'),$(member $C 3 false 3 '' null)],"
members+="\"unreachable\":[{\"node\":\"$C\",\"observedBy\":[\"$A\",\"$B\"],\"sinceMs\":6120}],\"converged\":false,\"version\":\"9f2c\"}"
status="{\"ok\":true,\"system\":\"demo\",\"selfNode\":\"$A\",\"selfUid\":\"5700353371690149461\",\"selfStatus\":\"Up\",\"uptimeMs\":192000,"
status+="\"pid\":812,\"version\":\"0.1.0\",\"healthy\":false,\"problems\":[\"$C is unreachable (6 s)\"],\"members\":3,\"up\":3,"
status+="\"unreachable\":1,\"converged\":false,\"convergedForMs\":null,\"leader\":\"$A\",\"oldest\":\"$A\",\"actors\":1204,"
status+="\"messagesPerSecond\":12400.0,\"deadLetters\":0,\"downing\":{\"strategy\":\"keep-majority\","
status+="\"stableAfterMs\":20000},\"encryption\":\"TLS 1.3 mutual\",\"cookie\":true,\"certificate\":{\"daysLeft\":359},"
reasons="\"reasons\":[{\"kind\":\"unreachable\",\"node\":\"$C\",\"status\":\"Up\",\"sinceMs\":6120,\"observedBy\":[\"$A\",\"$B\"],\"help\":\"if it is dead: troupe down $C\"}]"
status+="\"journal\":{\"name\":\"lmdb\",\"shared\":false,\"localStoreIsEnough\":true,\"state\":\"open\",\"events\":1204,\"commits\":37,\"waiting\":2},"
status+="\"refused\":{\"unknown-ca\":3,\"cookie\":1},$reasons,\"controlSocket\":\"x\"}"
event="{\"event\":{\"time\":\"2026-11-20T12:03:01.204Z\",\"type\":\"UnreachableMember\",\"member\":{\"node\":\"$C\",\"nodeUid\":\"3\","
event+="\"status\":\"Up\",\"roles\":[]},\"observedBy\":[\"$A\"],\"phi\":9.3}}"
cat >"$work/good" <<END
members $members
status $status
why {"ok":true,"selfNode":"$A","selfStatus":"Up","leader":"$A","members":3,"converged":false,"sinceMs":61000,$reasons,"gossip":{"merged":1}}
member-status {"ok":true,"node":"$B","nodeUid":"9","status":"Up","reachable":true}
join {"progress":"Joining, seen by 1 of 2"}
join {"ok":true,"node":"$B","status":"Up","upNumber":2,"elapsedMs":90900}
leave {"ok":true,"node":"$B","status":"Removed","elapsedMs":1400}
drain {"ok":true,"node":"$B","nodeUid":"18446744073709551615","status":"Up","drained":true,"shardsBefore":12,"shards":0,"stays":[],"singletons":["consumer","ids"],"elapsedMs":900}
undrain {"ok":true,"node":"$B","nodeUid":"18446744073709551615","status":"Up","drained":false,"shardsBefore":0,"shards":0,"stays":[],"elapsedMs":1}
down {"ok":true,"dryRun":true,"nodes":[{"node":"$C","nodeUid":"3","status":"Up","reachable":false,"unreachableForMs":42000}],"members":3,"remaining":2,"majorityKept":true,"left":7,"elapsedMs":1}
topics {"ok":true,"selfNode":"$A","mediators":[{"name":"default","role":null,"settled":true,"topicsCount":2,"topics":[{"topic":"news","group":null,"subscribers":3,"here":1,"nodes":2},{"topic":"jobs","group":"workers","subscribers":5,"here":0,"nodes":1}]}]}
publish {"ok":true,"topic":"news","delivered":3,"nodes":2,"silent":0}
singleton {"ok":true,"selfNode":"$A","singletons":[{"name":"consumer","role":"worker","state":"Younger","stateMs":5000,"host":"$B","hostMs":61000,"runsHere":false,"waits":null,"kept":0},{"name":"ids","role":null,"state":"BecomingOldest","stateMs":7000,"host":"$A","hostMs":7000,"runsHere":false,"waits":"$C has not handed it over yet (3 requests unanswered)","kept":0}]}
shards {"ok":true,"selfNode":"$A","types":[{"type":"order","role":null,"state":"hosts","why":null,"shards":1000,"here":600,"entities":12,"kept":0,"coordinator":"$A","coordinates":true,"ready":true,"coordinatorMs":61000,"nodes":[{"node":"$A","shards":600,"state":"hosts"},{"node":"$B","shards":400,"state":"leaving"}],"waitsCount":1,"waitsMs":7000,"waits":"shard 7 moves: its entities on $B have not ended"}]}
doctor {"ok":true,"selfNode":"$A","healthy":false,"failures":1,"warnings":1,"findings":[{"id":"joined","level":"ok","evidence":"this node is Up","advice":null,"page":"docs/doctor.md#joined"},{"id":"links","level":"fail","evidence":"A cannot dial B","advice":"open the port","page":"docs/doctor.md#links"},{"id":"clock","level":"warn","evidence":"B is 1.8 s ahead","advice":"start a time service","page":"docs/doctor.md#clock"}],"elapsedMs":1100}
metrics {"ok":true,"families":[{"name":"troupe_actors","type":"gauge","help":"Actors.","samples":[{"value":1204}]},{"name":"troupe_dead_letters_total","type":"counter","help":"Lost.","samples":[{"labels":{"reason":"no-such-actor"},"value":3}]},{"name":"troupe_wait_seconds","type":"histogram","help":"Waits.","buckets":[{"le":0.1,"count":3}],"count":4,"sum":1.5}]}
stop {"ok":true,"path":"$A/user/a","action":"stop","dryRun":false}
upgrade {"ok":true,"plugin":"counter.so","version":2,"changed":12,"keptCount":0,"kept":[],"elapsedMs":40}
spawn {"ok":true,"path":"/user/worker","behaviour":"worker","plugin":"counter.so"}
watch {"progress":"watching /user/a"}
watch {"ok":true,"path":"/user/a","addressTerminated":false,"elapsedMs":1500}
dashboard {"ok":true,"url":"http://127.0.0.1:8558/dashboard#code=0123","expiresMs":60000}
top {"ok":true,"selfNode":"$A","system":"demo","actors":1204,"handled":"17000","deadLetters":"3","walkAgeMs":310.5,"active":3,"suspended":1,"overloaded":1,"rows":[{"path":"/user/vault","behaviour":"vault","dispatcher":"default","messagesPerS":0,"mailbox":null,"ageMs":61000,"waitMs":null,"runMs":null,"heldMs":62000,"suspended":false,"handled":"7"},{"path":"/user/orders/w-3","behaviour":"order","dispatcher":"default","messagesPerS":1900.4,"mailbox":3100,"ageMs":null,"waitMs":2.14,"runMs":0.41,"heldMs":null,"suspended":true,"handled":"16000"}]}
deadletters {"ok":true,"selfNode":"$A","total":1204,"byReason":{"no-such-actor":1000,"mailbox-full":204},"deadLetters":[{"number":"1203","time":"2026-11-20T12:04:10.113Z","reason":"no-such-actor","type":"bank.add","bytes":24,"sender":"/user/client","recipient":"/user/countr","nearest":"/user/counter"},{"number":"1204","time":"2026-11-20T12:04:11.870Z","reason":"told-to-nobody","type":null,"bytes":1180,"sender":null,"recipient":null,"nearest":null}],"missed":3,"next":"1204"}
logs {"ok":true,"selfNode":"$A","lines":[{"number":"17","timestamp":"2026-11-20T12:04:10.113Z","severityText":"warning","severityNumber":13,"scope":{"name":"vault"},"body":"the vault is open door=7","attributes":{"door":"7"}}],"missed":1,"next":"17"}
entity {"ok":true,"type":"order","id":"4711","shard":17,"node":"$B","here":false,"state":"on another node"}
reach {"ok":true,"failed":1,"ways":[{"from":"$A","to":"$B","ok":true,"reason":""},{"from":"$B","to":"$A","ok":false,"reason":"connection refused"},{"from":"$C","to":"$A","reason":"it does not answer"}]}
shutdown {"ok":true,"node":"$A","dryRun":false,"nodes":["$A","$B"],"elapsedMs":1}
events {"progress":"subscribed"}
events $event
events $event
events {"ok":false,"exit":69,"error":"the node is stopping"}
trace {"ok":true,"traceId":"4bf92f3577b34da6a3ce929d0e0e4736","hops":[{"span":"a1","parent":"a1","actor":"/user/own","member":"$A","type":"t","timeNs":"1","runNs":1,"end":"handled"},{"span":"b1","parent":"b2","actor":"/user/left","member":"$A","type":"t","timeNs":"2","runNs":1,"end":"handled"},{"span":"b2","parent":"b1","actor":"/user/right","member":"$A","type":"t","timeNs":"3","runNs":1,"end":"handled"}]}
send {"ok":true,"path":"/user/a"}
ask {"ok":true,"from":"$B/user/a#193","elapsedMs":0.42,"reply":{"type":"json","json":{"total":42}}}
ping {"ok":true,"from":"$B/user/a","elapsedMs":0.39}
fault {"ok":true,"selfNode":"$A","cut":2,"rules":[{"peer":"*","send":"pass","receive":"lose=0.1 delay=20ms"},{"peer":"10.0.0.2:2552","send":"blackhole","receive":"blackhole"}],"passed":1204,"lost":88,"repeated":1,"delayed":640,"cutBytes":0}
peers {"ok":true,"selfNode":"$A","peers":[{"node":"$B","nodeUid":"18446744073709551615","state":"active","reason":"answered","next":"messages go at once","nextMs":0,"rttMs":0.09,"messagesIn":12,"messagesOut":9,"bytesIn":2048,"bytesOut":1024,"dropped":0,"wireMinor":2,"lanes":[{"lane":"control","state":"open","waitingBytes":0},{"lane":"ordinary-1","state":"open","waitingBytes":100},{"lane":"large","state":"closed","waitingBytes":20}],"slowThere":1,"heldBytes":4000,"slowHere":0},{"node":"$C","nodeUid":null,"state":"gated","reason":"connection refused","next":"it may be dialled again in 120 ms","nextMs":120,"rttMs":null,"messagesIn":0,"messagesOut":0,"bytesIn":0,"bytesOut":0,"dropped":3,"wireMinor":0,"lanes":[]}]}
tree {"ok":true,"path":"/user","entries":[{"path":"/user","depth":0,"behaviour":"guardian","processed":12,"restarts":0,"children":2},{"path":"/user/a","depth":1,"behaviour":"x","processed":1204,"restarts":0,"children":1},{"path":"/user/a/b","depth":2,"behaviour":"y","processed":0,"restarts":2,"children":0},{"path":"/user/c","depth":1,"behaviour":"z","processed":0,"restarts":0,"children":0}],"truncated":false}
END
cat >"$work/bad" <<'END'
members !close
status !hang
leader !garbage
member-status {"ok":false,"exit":68,"error":"no such member nope","hint":"troupe members"}
join {"ok":false,"exit":1,"error":"already a member of troupe.tcp://demo@10.0.0.1:2552"}
leave {"ok":false,"exit":75,"error":"still Leaving after 60 s"}
drain {"ok":true,"node":"$B","nodeUid":"18446744073709551615","status":"Up","drained":true,"shardsBefore":12,"shards":3,"stays":["order: 3"],"singletons":[],"elapsedMs":900}
undrain {"ok":false,"exit":68,"error":"no such member nope","hint":"troupe members"}
upgrade {"ok":true,"plugin":"counter.so","version":3,"changed":1,"keptCount":3,"kept":[{"path":"/user/a","why":"its code_change has failed"}],"elapsedMs":40}
spawn {"ok":false,"exit":77,"error":"file counter.so can be written by others (mode 0775): chmod go-w counter.so"}
watch {"ok":true,"path":"$B/user/a","addressTerminated":true,"elapsedMs":200}
ask {"ok":false,"exit":75,"error":"no reply in time"}
send !huge
tree !empty
ping {"ok":false,"exit":77,"error":"not permitted"}
fault {"ok":false,"exit":77,"error":"remote.test-adapters is off: this node's network cannot be disturbed"}
peers {"ok":true,"selfNode":"a","peers":[{"node":"b","nodeUid":null,"state":"idle","reason":"","next":"","nextMs":0,"rttMs":null,"messagesIn":0,"messagesOut":0,"bytesIn":0,"bytesOut":0,"dropped":3,"faults":"send blackhole, receive pass"}]}
END
background "$fake" "$work/good.sock" "$work/good" >"$work/requests"
background "$fake" "$work/bad.sock" "$work/bad" >/dev/null
sed '/^leave /s/ .*/ !hang/' "$work/good" >"$work/short"
sed '/^leave /s/.*/leave {"ordered":true}\nleave !hang/; /^down /s/ .*/ !hang/; /^join /s/ .*/ !close/
    /^status /s/12400.0/9400.0/
    /^status /s/"converged":false,"convergedForMs":null/"converged":true,"convergedForMs":0/; /^why /s/"members":3/"members":1/' "$work/good" >"$work/mute"
background "$fake" "$work/mute.sock" "$work/mute" >"$work/mute.requests"
background "$fake" --once "$work/short.sock" "$work/short" >"$work/short.requests"
background "$fake" --deaf "$work/deaf.sock"
for name in good bad short mute deaf; do wait_until 30 test -S "$work/$name.sock" || fail "fakes start"; done
good() { "$troupe" --socket "$work/good.sock" "$@"; }
bad() { "$troupe" --socket "$work/bad.sock" "$@"; }
deaf() { timeout 20 "$troupe" --socket "$work/deaf.sock" "$@"; }

# ---- tables
expect members_exits_0_with_an_unreachable_member 0 good members
has members_table_has_a_header "   ADDRESS" && has members_marks_this_node "*  $A" && has members_says_who_sees_it "seen by 2 of 2, 6s"
has members_names_the_leader "leader oldest" && has members_prints_age_and_rtt "3m12s" && has members_rtt "0.31ms"
has summary_goes_to_stderr "3 members, 1 unreachable" "$work/err"
lacks no_escape_code_without_a_terminal $'\033'
expect a_trace_in_circles_is_shown 0 good trace 4bf92f3577b34da6a3ce929d0e0e4736
has one_that_is_its_own_parent "/user/own@10.0.0.1:2552" && has one_of_a_circle "/user/left@10.0.0.1:2552" && has the_other_one "└─ /user/right@10.0.0.1:2552"
expect members_by_role 0 good members --role backend -o name
is role_filter_keeps_two "$(wc -l <"$work/out")" 2
expect members_unreachable_only 0 good members --unreachable -o name
is unreachable_filter_keeps_one "$(cat "$work/out")" "$C"
expect wide_output 0 good members -o wide
has wide_output_has_the_uid ffffffffffffffff
is wide_output_has_the_version_of_troupe "$(awk 'NR == 1 { at = index($0, "TROUPE") } NR > 1 { split(substr($0, at), cell, " "); print cell[1] }' \
    "$work/out" | tr '\n' ' ')" "0.9.1 0.9.1 - "
expect status_exits_1_when_unhealthy 1 good status
has status_screen "Cluster demo: NOT healthy (3 members, 3 Up, 1 unreachable, not converged)"
has status_uid_in_hex "uid 4f1bb93095caa655"
has status_tells_the_problem "$C is unreachable"
has status_tells_what_blocks "  unreachable demo@10.0.0.3:2552 (Up), 6s, says demo@10.0.0.1:2552, demo@10.0.0.2:2552" && has status_tells_what_helps \
    "              if it is dead: troupe down $C"
has status_shows_the_journal "journal     lmdb (this node only), open   1,204 events in 37 commits   2 wait"
has status_warns_of_a_local_journal_for_what_moves "persistence.local-store-is-enough is on"
has status_tells_how_links_are_protected "TLS 1.3 mutual, certificate valid 359 days, cookie"
has status_tells_who_was_refused "refused     unknown-ca 3, cookie 1 (connections since the start)"
expect status_for_prometheus 1 good status -o prom
is prom_counts_members "$(grep '^troupe_cluster_members ' "$work/out")" "troupe_cluster_members 3"
is prom_has_a_type_for_each_sample "$(grep -c '^# TYPE' "$work/out")" "$(grep -vc '^#' "$work/out")"
is prom_lines_are_samples "$(grep -v '^#' "$work/out" | grep -vcE '^troupe_[a-z_]+(\{version="[^"]*"\})? [0-9.e+-]+$')" 0
expect unreachable_table 0 good unreachable
# CLI-07
has unreachable_names_observers "$A,$B"
expect singleton_table 0 good singleton
has singleton_header "NAME" && has singleton_says_host "$B" && has singleton_says_what_it_waits_for "has not handed it over yet"
expect singleton_by_name 0 good singleton ids
has singleton_shows_one "BecomingOldest" && lacks singleton_shows_no_other "consumer"
expect singleton_as_names 0 good singleton -o name
expect singleton_unknown 68 good singleton nothing
expect topics_table 0 good topics
has topics_header "SUBSCRIBERS" && has topics_shows_the_group "workers"
expect topics_as_names 0 good topics -o name
is topics_are_sorted "$(tr '\n' ' ' <"$work/out")" "jobs news "
expect publish_says_to_how_many 0 good publish news hello
is publish_prints_numbers "$(cat "$work/out")" "delivered to 3 subscribers on 2 nodes"
expect publish_as_json 0 good publish news hello -o jsonl
has publish_has_its_fields '"silent":0'
expect shards_table 0 good shards
has shards_header "SHARDS" && has shards_says_where "$B" && has shards_says_what_it_waits_for "shard 7 moves"
expect shards_of_a_type 0 good shards order
expect shards_as_names 0 good shards -o name
expect shards_unknown 68 good shards nothing
expect shards_rebalance_needs_a_type 64 good shards --rebalance
expect shards_rebalance 0 good shards order --rebalance
expect entity_is_found 0 good entity order 4711
has entity_says_where "$B" && has entity_says_its_shard "17"
expect entity_needs_an_id 64 good entity order
expect upgrade_is_done 0 good upgrade counter.so
has upgrade_counts "counter.so  upgraded (0.0 s): 12 actors changed"
expect upgrade_json 0 good upgrade counter.so -o json
is_json upgrade_json_is_json
expect upgrade_that_some_did_not_take_is_1 1 bad upgrade counter.so
has upgrade_names_them "/user/a  keeps its old code: its code_change has failed" && has upgrade_counts_the_others "... and 2 more, which the log names"
expect upgrade_needs_a_file 64 good upgrade
expect spawn_is_done 0 good spawn worker --plugin counter.so --args '{"n":1}'
is spawn_prints_the_path "$(cat "$work/out")" /user/worker
expect spawn_json 0 good spawn worker --plugin counter.so -o json
is_json spawn_json_is_json
expect spawn_needs_a_plugin 64 good spawn worker
expect spawn_is_not_permitted 77 bad spawn worker --plugin counter.so
expect watch_ends 0 good watch /user/a
is watch_says_so "$(cat "$work/out")" "/user/a  has ended (1.5 s)"
lacks watch_prints_no_progress_off_a_terminal watching "$work/err"
expect watch_tells_its_progress 0 good watch /user/a -v
has watch_is_on "watching /user/a" "$work/err"
expect watch_json 0 good watch /user/a -o json
is_json watch_json_is_json
expect watch_of_a_lost_node 0 bad watch /user/a
has watch_names_the_loss "is lost with its node (0.2 s)"
expect watch_needs_a_path 64 good watch a
expect doctor_with_a_failure_exits_1 1 good doctor
is doctor_table "$(cat "$work/out")" " ok    joined               this node is Up
 FAIL  links                A cannot dial B
 warn  clock                B is 1.8 s ahead"
has doctor_counts "1 failure, 1 warning; troupe doctor --fix-hints says what to do" "$work/err"
expect doctor_with_hints 1 good doctor --fix-hints
has doctor_says_what_to_do "do: open the port" && has doctor_names_the_section "see: docs/doctor.md#links"
expect doctor_names 1 good doctor -o name
is doctor_names_are_those_that_are_not_ok "$(tr '\n' ' ' <"$work/out")" "links clock "
expect doctor_json 1 good doctor -o json
is_json doctor_json_is_json
cat >"$work/all" <<END
why {"ok":true,"selfNode":"$A","members":[{"node":"$A","yes":true,"answer":{"leader":"$A","members":3,"converged":true,"sinceMs":61000,"reasons":[]}},{"node":"$B","yes":null,"answer":null,"error":"it has not answered in time"}],"silent":["$B"],"elapsedMs":2000}
doctor {"ok":true,"selfNode":"$A","members":[{"node":"$A","yes":false,"answer":{"healthy":false,"failures":1,"warnings":0,"findings":[{"id":"links","level":"fail","evidence":"A cannot dial B","advice":"open the port","page":"docs/doctor.md#links"}]}},{"node":"$B","yes":null,"answer":null,"error":"timed out"}],"silent":["$B"],"elapsedMs":2000}
peers {"ok":true,"selfNode":"$A","peers":[]}
END
background "$fake" "$work/all.sock" "$work/all"
wait_until 60 test -S "$work/all.sock" || fail all_socket
all() { "$troupe" --socket "$work/all.sock" "$@" --all-members; }
expect a_silent_member_is_75 75 all why
is the_answers_have_their_headings "$(grep '^== ' "$work/out" | tr '\n' ' ')" "== $A == $B "
has the_silent_one_is_told "1 member has not answered: demo@10.0.0.2:2552 (it has not answered in time)" "$work/err"
expect a_no_beside_a_silent_one_is_1 1 all doctor
has both_are_told "demo@10.0.0.2:2552 (timed out)" "$work/err"
expect all_as_json 75 all why -o jsonl
is_json all_json_is_json
expect an_older_node_is_told 64 all peers
has it_is_called_older "of a version that does not know --all-members" "$work/err"
expect all_has_no_prom 64 all status -o prom

expect metrics_are_printed 0 good metrics
is each_has_its_line "$(head -n 2 "$work/out" | tr '\n' ';')" 'troupe_actors 1204;troupe_dead_letters_total{reason="no-such-actor"} 3;'
has a_histogram_has_its_end 'troupe_wait_seconds_bucket{le="+Inf"} 4'
expect metrics_of_a_part_of_a_name 0 good metrics dead
is it_is_that_one "$(cat "$work/out")" 'troupe_dead_letters_total{reason="no-such-actor"} 3'
expect metrics_of_a_pattern 0 good metrics 'troupe_a*' -o prom
is it_is_the_format_of_prometheus "$(tr '\n' ';' <"$work/out")" '# HELP troupe_actors Actors.;# TYPE troupe_actors gauge;troupe_actors 1204;'
expect metrics_as_json 0 good metrics -o json
is_json metrics_json
expect no_such_metric_is_68 68 good metrics moon
expect graph_for_graphviz 0 good graph
has graph_has_the_unreachable_one 'm2 [label="demo@10.0.0.3:2552\nUp", color=red];'
is graph_says_who_calls_it_so "$(grep -c 'm[01] -> m2 \[color=red, label="unreachable"\];' "$work/out")" 2
expect graph_for_mermaid 0 good graph --format mermaid
has mermaid_has_the_leader 'm0["demo@10.0.0.1:2552<br/>Up backend seed<br/>leader"]'
expect graph_as_json 0 good graph --format json
is_json graph_json
expect another_drawing_is_64 64 good graph --format svg
expect children_are_listed 0 good ls /user
has children_have_their_rows "/user" && expect ls_takes_no_depth 64 good ls /user --depth 2
expect colours_are_made_when_asked_for 1 good status --color=always
has there_is_an_escape "$(printf '\033')"
expect colours_are_left_out 1 good status --color=never
lacks there_is_no_escape "$(printf '\033')"
expect quiet_says_the_data_alone 0 good topics --quiet
is nothing_else_is_said "$(cat "$work/err")" ""
expect verbose_is_taken 0 good members --verbose
expect letters_are_followed_by_the_long_flag 0 good deadletters --follow --count 1 -o jsonl
expect a_report_by_the_long_flag 0 good report --out-file "$work/long.tar.gz"

expect check_of_ports_fails_with_the_finding 1 good check ports
is check_prints_its_findings "$(cat "$work/out")" "links: fail: A cannot dial B; open the port"
expect check_of_clock_is_no_with_a_warning 1 good check clock
expect check_of_something_else 64 good check moon
has check_says_what_there_is "there are: ready, alive, certs, clock, ports, versions" "$work/err"
expect check_of_a_node_that_knows_no_such_finding 1 good check versions
expect check_as_json 1 good check clock -o json
is_json check_json
expect member_of_an_address 0 good member 10.0.0.2:2552
has member_has_its_address "$B" && has member_has_its_status "status                 Up" && has member_has_its_association "wireMinor              2"
expect member_as_json 0 good member 10.0.0.2:2552 -o json
is_json member_json
expect member_needs_a_name 64 good member
expect actor_of_a_path 0 good actor /user
has actor_has_its_behaviour "behaviour              guardian" && has actor_has_its_children "children               2"
expect actor_as_json 0 good actor /user -o jsonl
has actor_json '"processed":12'
expect report_is_written 0 good report -O "$work/report.tar.gz"
is report_prints_its_name "$(cat "$work/out")" "$work/report.tar.gz"
is report_is_for_its_user_only "$(stat -c %a "$work/report.tar.gz")" 600
mkdir "$work/unpacked"
expect report_unpacks 0 tar -xzf "$work/report.tar.gz" -C "$work/unpacked"
is report_has_its_files "$(cd "$work/unpacked" && find . -name '*.json' | sed 's|.*/||' | LC_ALL=C sort | tr '\n' ' ')" \
    "config.json deadletters.json doctor.json logs.json members.json peers.json reach.json shards.json singleton.json status.json topics.json tree.json version.json why.json "
cat "$work"/unpacked/*/doctor.json >"$work/out"
has report_has_the_answers '"evidence"'
cat "$work"/unpacked/*/version.json >"$work/out" # the fake has no answer
has report_has_what_failed '"ok"'
expect report_that_cannot_be_written 74 good report -O "$work/none/report.tar.gz"
has report_says_where "$work/none/report.tar.gz.part: No such file" "$work/err"
mkfifo "$work/pipe" "$work/stuck.tar.gz.part"
expect report_over_no_file 64 good report -O "$work/pipe"
has report_says_that_it_is_none "$work/pipe is no regular file" "$work/err"
check the_pipe_stays test -p "$work/pipe"
ln -s /dev/null "$work/link"
expect report_over_a_link 64 good report -O "$work/link"
expect report_does_not_wait_for_a_reader 74 timeout 60 "$troupe" --socket "$work/good.sock" report -O "$work/stuck.tar.gz"
echo old >"$work/again.tar.gz.part"
expect report_of_a_second_try 0 good report -O "$work/again.tar.gz"
expect report_to_stdout 0 sh -c "'$troupe' --socket '$work/good.sock' report -O - | tar -tzf - | grep -q status.json"
is report_leaves_no_file_of_that_name "$(find . -maxdepth 1 -name '-*')" ""
expect report_without_a_node 69 "$troupe" --socket "$work/none.sock" report -O "$work/gone.tar.gz"
is report_without_a_node_leaves_no_file "$(find "$work" -name 'gone*')" ""
expect stop_needs_yes 64 good stop /user/a
expect stop_is_ordered 0 good stop /user/a --yes
is stop_prints_the_path "$(cat "$work/out")" "stop: $A/user/a"
expect kill_is_planned 0 good kill /user/a --dry-run
has kill_is_a_word_of_the_request '"action":"kill","dryRun":true' "$work/requests"
# LIFE-15
expect dashboard_prints_the_address 0 good dashboard
is dashboard_prints_nothing_else "$(cat "$work/out")" "http://127.0.0.1:8558/dashboard#code=0123"
expect dashboard_json 0 good dashboard -o json
is_json dashboard_is_json && has dashboard_says_how_long_it_is_good '"expiresMs": 60000'
expect top_table 0 good top
is top_has_the_most_urgent_first "$(cat "$work/out")" "demo@10.0.0.1:2552  1,204 actors  3 active  0 msg/s  dead letters 3
PATH              MSG/S  MBOX   AGE    WAIT   RUN    BEHAVIOUR  NOW
/user/vault       0      ?      1m01s  -      -      vault      one message for 1m02s
/user/orders/w-3  1,900  3,100  -      2.1ms  410us  order      waits for its supervisor"
expect top_as_names 0 good top -o name
is top_names_are_paths "$(tr '\n' ' ' <"$work/out")" "/user/vault /user/orders/w-3 "
expect top_as_json 0 good top -o jsonl
has top_json '"heldMs":62000'
expect deadletters_table 0 good deadletters
is deadletters_one_line_each "$(cat "$work/out")" "12:04:10.113  no-such-actor     /user/client -> /user/countr  bank.add, 24 B  (did you mean /user/counter?)
12:04:11.870  told-to-nobody    nobody -> nobody  -, 1,180 B"
has deadletters_are_counted_by_reason "1,204 dead letters since the start: no-such-actor 1,000, mailbox-full 204" "$work/err"
has deadletters_missed_are_told "3 dead letters missed: they came faster than they were read" "$work/err"
expect deadletters_as_names 0 good deadletters -o name
is deadletters_names_are_receivers "$(head -1 "$work/out")" /user/countr
expect deadletters_followed 0 good deadletters -f --count 3 -o jsonl
is deadletters_stream_is_one_object_a_line "$(grep -c '"number":"120[34]"' "$work/out")" 5
is deadletters_stream_tells_what_was_missed "$(grep -c '^{"missed":3}$' "$work/out")" 3
has deadletters_follow_from_the_last_one '"after":"1204","follow":true' "$work/requests"
expect deadletters_for_a_time 0 good deadletters -f --timeout 300ms
expect logs_table 0 good logs --level info --component vault
is logs_line "$(cat "$work/out")" "12:04:10.113  warning  vault  the vault is open door=7"
has logs_missed_are_told "1 line missed: they came faster than they were read" "$work/err"
has logs_choices_are_the_nodes '"level":"info","component":"vault"' "$work/requests"
expect logs_as_json 0 good logs -o json
has logs_json_has_the_names_of_opentelemetry '"severityNumber": 13'
expect logs_count_is_a_number 64 good logs --count none
expect peers_table 0 good peers
has peers_header "ADDRESS" && has peers_says_why "connection refused" && has peers_says_what_comes_next "it may be dialled again in 120 ms"
has peers_counts_lanes "2/3 +4120B" && has peers_prints_round_trips "0.09ms" && has peers_summary_goes_to_stderr "2 peers, 1 active" "$work/err"
expect peers_as_names 0 good peers -o name
is peers_one_address_a_line "$(cat "$work/out")" "$B
$C"
expect peers_as_json 0 good peers -o json
has peers_json_has_the_next_step '"nextMs":'
expect peers_as_one_line 0 good peers -o jsonl
is peers_jsonl_is_one_line "$(wc -l <"$work/out")" 1
lacks peers_have_no_faults_column "FAULTS"
expect fault_lists 0 good fault
has fault_table_has_the_rule "lose=0.1 delay=20ms" && has fault_summary "2 rules; frames: 1204 passed, 88 lost" "$work/err"
expect fault_set 0 good fault set 10.0.0.2:2552 receive lose=10% delay=20ms
has fault_sent_the_words '"direction":"receive","rule":"lose=10% delay=20ms"' "$work/requests"
expect fault_set_of_both 0 good fault set all blackhole
has fault_sent_one_word '"peer":"all","rule":"blackhole"' "$work/requests"
expect fault_set_needs_a_rule 64 good fault set 10.0.0.2:2552 send
expect fault_set_needs_a_peer 64 good fault set
expect fault_has_no_other_word 64 good fault explode
expect fault_clear_takes_one_peer 64 good fault clear a:1 b:1
expect fault_clear_all 0 good fault clear
expect leader_word 0 good leader
# CLI-09
is leader_prints_the_address "$(cat "$work/out")" "$A"
expect leader_of_role 0 good leader --role backend
is leader_of_role_is_another "$(cat "$work/out")" "$B"
expect leader_of_unknown_role_exits_1 1 good leader --role nobody
expect cluster_status_is_status_json 1 good cluster-status
# CLI-08
is_json cluster_status_json
expect cluster_status_as_akka_prints_it 0 good cluster-status -o table
has akka_text "	Member(address = $A, status = Up)"
expect is_singleton_is_no 1 good is-singleton
is is_singleton_prints_false "$(cat "$work/out")" false
expect is_available_is_yes 0 good is-available
expect why_exits_1_while_something_blocks 1 good why
has why_since 'do not agree for 1m01s; 3 members, leader demo@10.0.0.1:2552' && has why_who \
    'demo@10.0.0.3:2552 (Up), 6s, says demo@10.0.0.1:2552, demo@10.0.0.2:2552' && has why_help "if it is dead: troupe down $C"
is why_names "$(good why -o name)" "$C"
expect member_status_word 0 good member-status 10.0.0.2:2552
is member_status_is_one_word "$(cat "$work/out")" Up
expect tree_draws 0 good tree /user
has tree_branch "├─ a" && has tree_open_line "│  └─ b" && has tree_last "└─ c" && has tree_restarts "restarts 2"

# ---- JSON
for command in members peers fault status why cluster-status unreachable leader is-singleton is-available member-status tree "ask /user/a 1" \
    "send /user/a 1" "ping /user/a -c 2" "join $A" leave "down --dry-run --unreachable" version; do
    # shellcheck disable=SC2086
    good $command -o json >"$work/out" 2>"$work/err"
    is_json "json_of_${command%% *}"
    lacks "no_escape_in_${command%% *}" $'\033'
    # shellcheck disable=SC2086
    good $command -o jsonl >"$work/out" 2>"$work/err"
    is "jsonl_of_${command%% *}_is_lines" "$(grep -c '^{.*}$' "$work/out")" "$(wc -l <"$work/out")"
done
good members -o json >"$work/out"
has ids_are_strings '"nodeUid": "18446744073709551615"'
lacks ok_is_not_data '"ok"'
for round in 1 2 3 4 5 6 7 8 9 10; do good members; done 2>/dev/null | sort | uniq -c | awk '$1 % 10 { bad = 1 } END { exit bad }' \
    && pass output_is_stable || fail output_is_stable "lists differ between calls"

expect the_launcher_of_multinode_is_found_beside_the_program 0 "$troupe" multinode --help

# ---- what differs a little
expect status_of_a_slower_one 1 "$troupe" --socket "$work/mute.sock" status
has small_rates_are_whole " 9,400 msg/s"
has agreement_of_this_moment_has_an_age "converged 0"
has status_names_the_leader "leader      $A"
expect why_of_one 1 "$troupe" --socket "$work/mute.sock" why
has why_counts_one "; 1 members, leader demo@10.0.0.1:2552"

# ---- reach
expect a_way_that_is_closed_is_a_no 1 good reach
has closed_ways_have_their_reason "no       connection refused" && has a_way_that_was_not_asked_is_unknown "unknown  it does not answer"
lacks open_ways_are_not_shown " yes" && has open_ways_are_counted "1 of 3 ways can be dialled"
expect all_ways_are_shown 1 good reach -o wide
is all_ways_are_shown_in_order "$(awk 'NR > 1 && NF > 2 { print $3 }' "$work/out" | tr '\n' ' ')" "yes no unknown 3 "
expect names_are_those_that_cannot_be_dialled 1 good reach -o name
is names_of_closed_ways "$(tr '\n' ' ' <"$work/out")" "$A $A "

# ---- changes
expect join_waits 0 good join $A -v
is progress_is_a_line "$(grep -c '^Joining, seen by 1 of 2$' "$work/err") $(tail -c 1 "$work/err" | wc -l)" "1 1"
has join_result "demo@10.0.0.2:2552  Up (90.9 s, member 2)"
expect drain_says_what_moved 0 good drain 10.0.0.2:2552
has drain_counts_shards "demo@10.0.0.2:2552  drained (0.9 s, 12 shards were handed over)" && has drain_names_singletons "consumer, ids" &&
    has drain_says_that_leave_moves_them "troupe leave demo@10.0.0.2:2552"
has drain_asks_for_the_member '"cmd":"drain","timeoutMs":60000,"wait":true,"member":"10.0.0.2:2552"' "$work/requests"
expect drain_without_waiting 0 good drain --no-wait
has drain_without_waiting_says_so "drained (ordered)"
expect drain_as_json 0 good drain -o json
has drain_has_its_fields '"shardsBefore": 12'
expect drain_that_cannot_move_all 1 bad drain
has drain_says_what_stays "order: 3" && has drain_says_what_helps "start another node"
expect drain_that_cannot_move_all_without_waiting 0 bad drain --no-wait
expect undrain_says_so 0 good undrain 10.0.0.2:2552
has undrain_has_its_line "demo@10.0.0.2:2552  drained no more"
expect undrain_of_nobody 68 bad undrain nope
expect drain_takes_one_member 64 good drain a b
expect leave_says_removed 0 good leave
expect down_without_terminal_needs_yes 64 good down 10.0.0.3:2552 </dev/null
has down_names_the_flag "--yes" "$work/err"
expect down_dry_run 0 good down 10.0.0.3:2552 --dry-run
has down_plan "would mark $C (uid 0000000000000003, Up, unreachable 42s) Down" && has down_majority "2 of 3 members remain (majority kept)"
has down_says_that_some_are_left "7 more members are unreachable than one order can name"
expect down_takes_one_or_all 64 good down --yes
expect down_done 0 good down 10.0.0.3:2552 --yes
has down_says_gone "marked $C (uid 0000000000000003, Up, unreachable 42s) Down: gone"
has down_is_cautious '"cmd":"down","timeoutMs":60000,"wait":true,"cautious":true,"dryRun":false' "$work/requests"
expect down_of_the_dead 0 good down 10.0.0.3:2552 --yes --dead
has down_of_the_dead_is_not_cautious '"cmd":"down","timeoutMs":60000,"wait":true,"dead":true,"dryRun":false' "$work/requests"
# A side that does not go on: what may come of it is asked before, not said after.
sed '/^down /s/"majorityKept":true/"majorityKept":false,"mayGoOn":false/; s/^why .*/why {"ok":true,"selfNode":"a","selfStatus":"Up","leader":null,"members":9,"converged":false,"sinceMs":1,"reasons":[{"kind":"unreachable","node":"troupe.tcp:\/\/d@a:1","status":"Up","sinceMs":6120,"observedBy":["troupe.tcp:\/\/d@b:1"],"help":"look","count":5,"nodes":["troupe.tcp:\/\/d@a:1","troupe.tcp:\/\/d@a:2","troupe.tcp:\/\/d@a:3","troupe.tcp:\/\/d@a:4","troupe.tcp:\/\/d@a:5"]}]}/' "$work/good" >"$work/split"
background "$fake" "$work/split.sock" "$work/split" >"$work/split.requests"
wait_until 30 test -S "$work/split.sock" || fail "the fake of a split starts"
expect split_down_dry_run 0 "$troupe" --socket "$work/split.sock" down 10.0.0.3:2552 --dry-run
has split_down_warns_before "make sure that they are stopped"
expect split_down_after_a_question 0 "$fake" --yes "$troupe" --socket "$work/split.sock" down 10.0.0.3:2552
has split_down_asks_whether_they_are_stopped "Are you sure that all of them are stopped? [y/N]" "$work/err"
lacks split_down_says_nothing_more_after "make sure"
is split_down_that_was_asked_is_not_cautious "$(tail -n 1 "$work/split.requests" | grep -c cautious)" 0
expect equal_findings 1 "$troupe" --socket "$work/split.sock" why
has equal_findings_are_one_line "unreachable 5 members: d@a:1, d@a:2, d@a:3 and 2 more (Up), 6s, says d@b:1"
is equal_findings_as_names "$("$troupe" --socket "$work/split.sock" why -o name | wc -l)" 5
expect down_no_wait 0 good down 10.0.0.3:2552 --yes --no-wait
has down_no_wait_says_ordered "Down (ordered)"
lacks down_no_wait_claims_no_end "gone"
expect shutdown_done 0 good shutdown --yes
has shutdown_says_ended "ended $A"
expect shutdown_no_wait 0 good shutdown --yes --no-wait
has shutdown_no_wait_says_ordered "ending $A (ordered)"
lacks shutdown_no_wait_claims_no_end "ended"
# What is confirmed is ordered: the incarnations of the plan, whatever a name means by then.
for words in "10.0.0.3:2552" --unreachable; do
    expect "down_asks_${words%%:*}" 0 "$fake" --yes "$troupe" --socket "$work/good.sock" down "$words"
    has down_shows_the_plan "would mark $C" "$work/err"
done
tail -n 4 "$work/requests" >"$work/confirmed"
has down_orders_the_incarnation_of_the_plan '"dryRun":false,"member":"0000000000000003"}' "$work/confirmed"
has down_of_all_orders_those_of_the_plan '"dryRun":false,"uids":["3"]}' "$work/confirmed"
expect leave_dry_run 0 good leave --dry-run
lacks leave_dry_run_orders_nothing '"cmd":"leave","timeoutMs":60000,"wait":true,"dry' "$work/requests"

# ---- actors
expect ask_prints_the_reply 0 good ask /user/a '{"add":5}'
is ask_reply_is_plain "$(cat "$work/out")" '{"total":42}'
has ask_sent_json '"type":"json","text":"{\"add\":5}"' "$work/requests"
expect ask_text 0 good ask /user/a hello
has ask_sent_string '"type":"string","text":"hello"' "$work/requests"
echo '"quoted"' | good ask /user/a - >/dev/null
has quoted_text_is_a_string '"type":"string","text":"\"quoted\""' "$work/requests"
expect type_takes_json_only 65 good ask /user/a --type bank.Add 'no json'
expect path_must_be_a_path 64 good ask user/a hello
expect on_adds_the_address 0 good ask /user/a x --on 10.0.0.2
has on_resolved "\"path\":\"$B/user/a\"" "$work/requests"
head -c 400000 /dev/zero | tr '\0' x >"$work/large"
expect message_above_the_limit_is_refused 65 good send /user/a - <"$work/large"
head -c 393216 /dev/zero | tr '\0' x >"$work/large"
expect message_at_the_limit_is_sent 0 good send /user/a - <"$work/large"
printf '\377\376' >"$work/binary"
expect binary_is_refused 65 good send /user/a - <"$work/binary"
expect ping_counts 0 good ping /user/a -c 3 --interval 1ms
is ping_prints_three "$(wc -l <"$work/out")" 3
has ping_summary "3 sent, 3 received, 0 lost" "$work/err"
is p99_of_equal_times_is_that_time "$(sed -n 's/.*p99 //p' "$work/err")" "0.39/0.39/0.39 ms"

# ---- streams
expect events_end_after_count 0 good events --count 1
is events_one_line "$(wc -l <"$work/out")" 1
has events_text "12:03:01.204  UnreachableMember  demo@10.0.0.3:2552  Up  observed by demo@10.0.0.1:2552"
expect events_end_with_the_node 69 good events -o json
is events_two_objects "$(grep -c '"UnreachableMember"' "$work/out")" 2
expect unknown_event_type 64 good events --type MemberUpp
has event_type_suggested "did you mean 'MemberUp'?" "$work/err"
expect watch_ends_when_the_reader_goes 0 bash -c '"$0" --socket "$1" members -o json --watch=0.1 | head -n 2; exit ${PIPESTATUS[0]}' "$troupe" "$work/good.sock"
is watch_json_is_one_object_a_line "$(wc -l <"$work/out")" 2
background "$troupe" --socket "$work/good.sock" status --watch=600 >"$work/repeated"
check what_is_repeated_is_shown_before_the_pause wait_until 30 test -s "$work/repeated"
kill "$started"
await "$started" 30 || fail who_repeats_ends
expect closed_pipe_is_no_error 0 bash -c 'for i in 1 2 3; do "$0" --socket "$1" members -o name | true; [ ${PIPESTATUS[0]} -eq 0 ] || exit 1; done' "$troupe" "$work/good.sock"
expect wait_members 0 good wait --members 3 --role backend=2
says wait_times_out 75 "3/4 Up" good wait --members 4 --timeout 200ms
has wait_says_what_is_missing "3/4 Up" "$work/err"
says wait_says_all_that_is_missing 75 "3/4 Up, 2/3 Up with role backend" good wait --members 4 --role backend=3 -t 200ms
expect wait_gone_of_nobody 0 good wait --gone 10.0.0.9:2552
has wait_gone_says_that_it_was_no_member "10.0.0.9:2552 was not a member" "$work/err"
for name in 10.0.0.3:2552 10.0.0.3 demo@10.0.0.3:2552 "$C" 3 0000000000000003; do
    expect "wait_gone_of_the_member_$name" 75 good wait --gone "$name" -t 100ms
done
expect wait_role_refuses_a_number_of_more_than_32_bits 64 good wait --role db=4294967297 -t 5s
expect wait_gone_of_a_foreign_address 64 good wait --gone akka.tcp://demo@10.0.0.3:2552
has wait_gone_did_you_mean "did you mean 'troupe.tcp://demo@10.0.0.3:2552'?" "$work/err"

# ---- what cannot be written: a full and a closed descriptor, of each command that prints
unwritten() { # NAME COMMAND...
    local name=$1
    shift
    expect "${name}_on_a_full_disk" 74 bash -c '"$@" >/dev/full' - "$@"
    has "${name}_on_a_full_disk_says_so" "cannot write" "$work/err"
    expect "${name}_on_a_closed_stdout" 74 bash -c '"$@" >&-' - "$@"
}
asked=(members "members -o json" "members --watch=600" status why "member-status $B" topics singleton shards doctor metrics top deadletters \
    "deadletters -f" logs reach events "ask /user/a x" "ping /user/a -c 1" peers fault tree "down 10.0.0.3:2552 --dry-run" "entity order 4711" dashboard)
[ -z "$sanitizer" ] || asked=("${asked[@]:0:3}")
for words in "${asked[@]}"; do
    # shellcheck disable=SC2086
    unwritten "${words//[^a-z]/_}" "$troupe" --socket "$work/good.sock" $words
done
local_ones=("config show" "demo --list" help "help members" version "completion bash" "config show --reference" "config --help" "cert --help" "cookie gen" "journal --help" \
    "node --help" "dev --help" "fsm --help" "sim --nodes 3 --until 1s" "top --help")
[ -z "$sanitizer" ] || local_ones=("${local_ones[@]:0:3}")
for words in "${local_ones[@]}"; do
    # shellcheck disable=SC2086
    unwritten "${words//[^a-z]/_}" "$troupe" $words
done

# ---- a broken node
expect node_closes 69 bad members
expect node_hangs 75 bad status --timeout 100ms
expect frame_above_the_limit 70 bad send /user/a x
expect empty_frame 70 bad tree
expect no_such_member 68 bad member-status nope
has error_has_a_hint "hint: troupe members" "$work/err"
expect already_a_member 1 bad join $A
expect leave_timed_out 75 bad leave
expect no_reply 75 bad ask /user/a x
expect not_permitted 77 bad ping /user/a
expect fault_where_the_key_is_off 77 bad fault
has fault_names_the_key "remote.test-adapters is off" "$work/err"
expect peers_with_a_fault 0 bad peers
has peers_have_a_faults_column "FAULTS" && has peers_show_the_rule "send blackhole, receive pass"
# ---- a node that closes what rests: a pause may be longer than it waits
expect watch_draws_again 0 bash -c '"$0" --socket "$1" members -o jsonl --watch=0.1 | head -n 2; exit ${PIPESTATUS[0]}' "$troupe" "$work/short.sock"
is watch_drew_twice "$(wc -l <"$work/out")" 2
expect ping_asks_again 0 "$troupe" --socket "$work/short.sock" ping /user/a -c 2 --interval 1ms
expect message_from_stdin_is_sent 0 "$troupe" --socket "$work/short.sock" send /user/a --on 10.0.0.2 - <<<hello
for words in "down 10.0.0.3:2552" shutdown; do
    # CLI-04
    # shellcheck disable=SC2086
    expect "${words%% *}_is_ordered_after_a_prompt" 0 "$fake" --yes "$troupe" --socket "$work/short.sock" $words
    is "${words%% *}_is_ordered_once" "$(grep -c "\"cmd\":\"${words%% *}\".*\"dryRun\":false" "$work/short.requests")" 1
done

# ---- a node that does not accept: its queue holds one connection, and the first command stays in it
background "$troupe" --socket "$work/deaf.sock" members --timeout 60s >"$work/queued" 2>&1
first=$started
connected() { ls -l "/proc/$1/fd" | grep -q socket:; }
wait_until 30 connected "$first" || fail "the queue is full"
for words in status members "leave --no-wait" "wait --up" "events --count 1"; do
    # shellcheck disable=SC2086
    expect "deaf_node_${words%% *}" 75 deaf $words -t 100ms
done
deaf status -t 100ms 2>"$work/err"
# CLI-16
has deaf_node_is_named "the node at $work/deaf.sock does not accept: stopped (SIGSTOP), or it hangs" "$work/err"
expect deaf_node_is_running 69 timeout 20 "$troupe" node --port 0 --socket "$work/deaf.sock"
has deaf_node_is_running_and_told "already running: a process listens at $work/deaf.sock, but does not accept" "$work/err"
mkdir -p "$work/run/troupe"
mv "$work/deaf.sock" "$work/run/troupe/deaf$$@2551.sock"
expect deaf_node_is_found_and_not_waited_for 75 timeout 20 env XDG_RUNTIME_DIR="$work/run" "$troupe" --system "deaf$$" status -t 100ms
mv "$work/good.sock" "$work/run/troupe/near$$@2551.sock"
expect deaf_node_of_another_system_hinders_nobody 0 timeout 20 env XDG_RUNTIME_DIR="$work/run" "$troupe" --system "near$$" members -t 10s
expect deaf_node_is_alive 64 timeout 20 env XDG_RUNTIME_DIR="$work/run" "$troupe" members -t 10s
has deaf_node_is_listed "deaf$$@2551" "$work/err" && has other_node_is_listed "near$$@2551" "$work/err"
expect completion_does_not_hang 0 timeout 20 env XDG_RUNTIME_DIR="$work/run" "$troupe" --system "deaf$$" __complete down ""

# ---- an order without the node's word
mute() { "$troupe" --socket "$work/mute.sock" "$@"; }
expect order_without_an_answer 75 mute down 10.0.0.3:2552 --yes -t 500ms
has order_without_an_answer_says_so "not confirmed by the node at $work/mute.sock within 0.5 s: process " "$work/err"
has order_without_an_answer_says_what_becomes_of_it "runs, but does not answer; it drops the order unless" "$work/err"
expect order_whose_connection_is_closed 75 mute join $A
has order_whose_connection_is_closed_says_so "not confirmed by the node at $work/mute.sock: it closed the connection" "$work/err"
expect order_that_was_confirmed 75 mute leave -t 500ms
has order_that_was_confirmed_says_what_goes_on "no end within 0.5 s; the node keeps leaving" "$work/err"
lacks order_that_was_confirmed_is_not_in_doubt "not confirmed" "$work/err"

# ---- Ctrl-C at `leave`: whether it was ordered
interrupted() { # NAME SOCKET CONDITION
    local name=$1 socket=$2
    shift 2
    background "$troupe" --socket "$socket" leave --timeout 60s 2>"$work/$name"
    if wait_until 30 "$1" "$started"; then kill -TERM "$started"; else fail "${name}_begins"; fi
    ended "${name}_ends" "$started" 143
}
hears_leave() { grep -q '"cmd":"leave"' "$work/short.requests"; }
interrupted leave_that_was_sent "$work/short.sock" hears_leave
has leave_that_was_sent_is_in_doubt "interrupted; not confirmed by the node: it drops the order unless" "$work/leave_that_was_sent"
background "$troupe" --socket "$work/mute.sock" -v leave --timeout 60s 2>"$work/leave_that_was_ordered"
wait_until 30 grep -q ordered "$work/leave_that_was_ordered" || fail leave_is_confirmed
kill -TERM "$started"
ended leave_that_was_ordered_ends "$started" 143
has leave_that_was_ordered_goes_on "interrupted; the node keeps leaving" "$work/leave_that_was_ordered"
interrupted leave_that_was_not_ordered "$work/run/troupe/deaf$$@2551.sock" connected
lacks leave_that_was_not_ordered_changes_nothing "keeps leaving" "$work/leave_that_was_not_ordered"
expect no_such_socket 69 "$troupe" --socket "$work/none.sock" members
# ---- what a node, or a peer that it tells of, may not do to a terminal, and to the tool
printf 'status {"ok":true,"system":"demo\\u001b[2J","selfNode":"%s","problems":["\\u001b]0;x\\u0007 is \\u009b31mred\\u007f\\nCluster fine"],"healthy":false}\n' "$A" >"$work/nasty"
printf 'ask {"ok":true,"from":"%s","reply":{"type":"text","text":"one\\ntwo\\u001b[31m"}}\n' "$A" >>"$work/nasty"
background "$fake" "$work/nasty.sock" "$work/nasty"
wait_until 30 test -S "$work/nasty.sock" || fail "fake starts"
nasty() { "$troupe" --socket "$work/nasty.sock" "$@"; }
nasty status >"$work/out" 2>&1
is control_characters_are_not_printed "$(LC_ALL=C tr -d '\n' <"$work/out" | LC_ALL=C grep -c '[[:cntrl:]]')" 0
is a_problem_is_one_line "$(grep -c '^Cluster fine' "$work/out")" 0
nasty ask "$A/user/a" hello >"$work/out" 2>&1
is an_answer_keeps_its_lines_and_no_other_control_character "$(grep -c '^two?\[31m' "$work/out")" 1
nasty status -o json >"$work/out" 2>&1
is json_has_them_escaped "$(LC_ALL=C tr -d '\n' <"$work/out" | LC_ALL=C grep -c '[[:cntrl:]]')" 0
odd_values=('{}' '{"ok":true}' '{"ok":7}' '[]' '{"ok":true,"members":7,"problems":{},"reasons":"x","nodes":null,"peers":[],"entries":{},"event":[],"reply":"x"}'
    '{"ok":true,"members":[7,null,"x",[],{}],"problems":[7,{}],"reasons":[7,[],{"kind":7}],"nodes":[7,{}],"peers":[7,{"lanes":7},{}],"entries":[7,{}],"rules":[7,{}],"deadLetters":[7,{},{"bytes":"x","recipient":7}],"byReason":{"x":"y"},"lines":[7,{"scope":7},{}],"missed":-1e308,"next":7,"unreachable":[7],"event":{"type":7},"reply":{"type":7}}'
    '{"ok":true,"uptimeMs":1e308,"pid":-1e308,"members":[{"ageMs":1e308,"rttMs":-1e308,"phi":1e308,"upNumber":1e308,"nodeUid":"x","roles":7}],"elapsedMs":1e308,"converged":7,"selfUid":[],"certificate":7,"downing":7,"refused":7,"left":-1e308,"remaining":1e308}'
    '{"ok":false}' '{"ok":false,"exit":1e308,"error":7}' '{"ok":false,"exit":-1,"error":{}}' '{"progress":7}')
aborted=0
for odd in "${odd_values[@]}"; do
    for command in members status why member-status join leave down shutdown events send ask ping fault peers tree leader unreachable deadletters logs doctor; do echo "$command $odd"; done >"$work/odd"
    rm -f "$work/odd.sock"
    background "$fake" "$work/odd.sock" "$work/odd" >/dev/null
    wait_until 30 test -S "$work/odd.sock" || fail "fake starts"
    for command in members "members -o wide" status why member-status "join $A" leave "down $A" shutdown "events --count 1" "send /user/a x" "ask /user/a x" "ping /user/a" fault peers tree leader unreachable doctor "check ports" "member x" "actor /user/a" "stop /user/a --yes" deadletters logs "logs -f --count 1"; do
        # shellcheck disable=SC2086 # words
        timeout 20 "$troupe" --socket "$work/odd.sock" --timeout 1s $command </dev/null >"$work/out" 2>"$work/err"
        code=$?
        case $code in
        0 | 1 | 6[4-9] | 7[0-8]) ;;
        *) aborted=$((aborted + 1)) && echo "  $command: exit $code for $odd" ;;
        esac
    done
done
is odd_answers_abort_nothing "$aborted" 0

# ---- a socket that another user has put there
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
    chmod 711 "$work"
    mkdir -m 1777 "$work/laid"
    cp "$work/good" "$work/laid/good" && chmod 644 "$work/laid/good"
    background setpriv --reuid 65534 --regid 65534 --clear-groups "$fake" "$work/laid/laid$$@2552.sock" "$work/laid/good"
    wait_until 30 test -S "$work/laid/laid$$@2552.sock" || fail "fake starts as another user"
    expect a_socket_of_another_user_is_not_asked 77 "$troupe" --socket "$work/laid/laid$$@2552.sock" members
    has it_says_why "was put there by another user" "$work/err"
    mkdir -p "$work/runtime"
    mv "$work/laid" "$work/runtime/troupe"
    mkdir -m 755 "$work/shut" && mkdir -m 700 "$work/shut/troupe"
    expect a_directory_that_may_not_be_read_is_not_passed_over 77 \
        setpriv --reuid 65534 --regid 65534 --clear-groups env XDG_RUNTIME_DIR="$work/shut" "$troupe" --system "nobody$$" members
    has it_is_named "$work/shut/troupe" "$work/err"
    expect a_directory_that_others_may_write_to_is_not_searched 77 env XDG_RUNTIME_DIR="$work/runtime" "$troupe" --system "laid$$" members
    chown 65534 "$work/runtime/troupe" && chmod 755 "$work/runtime/troupe"
    expect nor_one_of_another_user 77 env XDG_RUNTIME_DIR="$work/runtime" "$troupe" --system "laid$$" members
    expect a_node_of_another_user_in_its_own_directory_is_asked 0 "$troupe" --socket "$work/runtime/troupe/laid$$@2552.sock" members
fi
test_end
