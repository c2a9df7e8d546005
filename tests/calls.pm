package calls;
# calls.pm - which file calls which, read from the text of the sources: for tests/tidy, and for whoever wants to see it:
#
#   perl -Itests -Mcalls -e 'calls::show(@ARGV)' [ROOM]     the circles, and the calls between the files of those in ROOM
#
# A file is a source with the header of its name. A call is the name of a function of the tree, in front of a parenthesis,
# within a function; a macro of a header calls where it is used. A call through a pointer is none: that is what tables are for.
use strict;
use warnings;
use File::Find;

# Blank comments and the inside of literals; lines keep their numbers.
sub code_of {
    my ($text) = @_;
    $text =~ s{/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'}{
        my ($quote, $lines) = (substr($&, 0, 1), $& =~ tr/\n//);
        $quote eq '/' ? " " . "\n" x $lines : "$quote$quote";
    }gse;
    return $text;
}

sub unit_of {
    my ($path) = @_;
    return $path =~ s/\.[ch]$//r;
}

# Every function with its text: { unit, name, static, body }; macros of the file; and initialisers, as text.
sub parts_of {
    my ($path, $text, $macros) = @_;
    my (@functions, @head, $body);
    $text = code_of($text);
    $text =~ s{^[ \t]*#[ \t]*define[ \t]+(\w+)((?:[^\n\\]|\\.)*)}{
        push @{ $macros->{$1} }, [ $path, $2 ];
        "\n" x ($& =~ tr/\n//);
    }gmse;
    $text =~ s/^[ \t]*#(?:[^\n\\]|\\.)*//gms;
    for my $line (split /\n/, $text) {
        if (defined $body) {
            $body .= "$line\n";
            next if $line !~ /^\}/;
            my ($last) = join("\n", @head) =~ /([^;}]*)\z/;
            $last =~ s/__attribute__\s*\(\(.*?\)\)|\b(?:UNIT|TRP_PRINTF)\w*\([^)]*\)//gs;
            if (my ($before, $name) = $last =~ /^(.*?)\b(\w+)\s*\(/s) {
                push @functions, { unit => unit_of($path), path => $path, name => $name, static => $before =~ /\bstatic\b/ ? 1 : 0,
                                   body => $body };
            }
            @head = ();
            $body = undef;
        } elsif ($line =~ /^\{/) {
            $body = "$line\n";
        } else {
            push @head, $line;
        }
    }
    return @functions;
}

# (graph, calls): unit => { unit => [ "caller>callee", ... ] } of calls, and the list [ path, caller, callee, its path ] of all names.
sub read_tree {
    my ($sources) = @_; # path => text
    my (%macros, @functions, %extern, %inline, %own);
    push @functions, parts_of($_, $sources->{$_}, \%macros) for sort keys %$sources;
    for my $f (@functions) {
        if (!$f->{static}) {
            $extern{ $f->{name} } = $f;
        } elsif ($f->{path} =~ /\.h$/) {
            $inline{ $f->{name} } = $f;
        } else {
            $own{ $f->{path} }{ $f->{name} } = 1;
        }
    }
    my (%graph, @names);
    for my $f (@functions) {
        my %seen;
        my $look;
        $look = sub {
            my ($text, $depth) = @_;
            while ($text =~ /(?<![\w.])(?<!->)([A-Za-z_]\w*)(\s*\()?/g) {
                my ($name, $call) = ($1, defined $2);
                next if $own{ $f->{path} }{$name} || $seen{$name}++;
                my $to = $extern{$name} // $inline{$name};
                if (defined $to) {
                    delete $seen{$name} if !$call; # it may be called further on
                    push @names, [ $f->{path}, $f->{name}, $name, $to->{path} ] if $to->{path} ne $f->{path};
                    push @{ $graph{ $f->{unit} }{ $to->{unit} } }, "$f->{name}>$name" if $call && $to->{unit} ne $f->{unit};
                } elsif (exists $macros{$name} && $depth < 4) {
                    $_->[0] =~ /\.h$/ || $_->[0] eq $f->{path} and $look->($_->[1], $depth + 1) for @{ $macros{$name} };
                }
            }
        };
        $look->($f->{body}, 0);
    }
    return (\%graph, \@names);
}

# The sets of units that call one another in circles, the largest first.
sub circles_of {
    my ($graph) = @_;
    my (%index, %low, %on, @stack, @found);
    my $next = 0;
    my $visit;
    no warnings 'recursion';
    $visit = sub {
        my ($v) = @_;
        $index{$v} = $low{$v} = $next++;
        push @stack, $v;
        $on{$v} = 1;
        for my $w (sort keys %{ $graph->{$v} // {} }) {
            if (!exists $index{$w}) {
                $visit->($w);
                $low{$v} = $low{$w} if $low{$w} < $low{$v};
            } elsif ($on{$w} && $index{$w} < $low{$v}) {
                $low{$v} = $index{$w};
            }
        }
        return if $low{$v} != $index{$v};
        my @set;
        do {
            push @set, pop @stack;
            delete $on{ $set[-1] };
        } while $set[-1] ne $v;
        push @found, [ sort @set ] if @set > 1;
    };
    for my $v (sort keys %$graph) {
        $visit->($v) if !exists $index{$v};
    }
    return sort { @$b <=> @$a || $a->[0] cmp $b->[0] } @found;
}

# A small house with a circle of three, two of them in one file with its header, and one that goes through a table.
sub self_test {
    my ($graph) = read_tree({
        'a/one.c'   => "void\none(void)\n{\n    TWICE(two());\n}\n",
        'a/one.h'   => "static inline void\nshort_way(void)\n{\n    three();\n}\n#define TWICE(x) \\\n    short_way(x)\n",
        'a/two.c'   => "static void\nthree(void)\n{\n}\nvoid\ntwo(void)\n{\n    three(); /* one() */\n    s->one(); ops.one(\"one()\");\n}\n",
        'a/three.c' => "void *\nthree(void)\n{\n    four();\n}\n",
        'a/four.c'  => "void\nfour(void)\n{\n    one();\n    table = two;\n}\n",
    });
    my @circles = circles_of($graph);
    return @circles == 1 && join(' ', @{ $circles[0] }) eq 'a/four a/one a/three' && exists $graph->{'a/one'}{'a/two'} &&
        !exists $graph->{'a/two'} && !exists $graph->{'a/four'}{'a/two'};
}

sub show {
    my ($room) = @_;
    my %sources;
    find({ no_chdir => 1, wanted => sub {
        return if !-f || !/\.[ch]$/;
        open my $file, '<', $_ or die "$_: $!\n";
        local $/;
        $sources{$_} = <$file>;
    } }, grep { -d } 'include', 'src', 'remote', 'cluster');
    my ($graph) = read_tree(\%sources);
    for my $circle (circles_of($graph)) {
        my %in = map { $_ => 1 } @$circle;
        print scalar(@$circle) . " @$circle\n";
        next if !defined $room || !grep { index($_, $room) == 0 } @$circle;
        for my $from (@$circle) {
            for my $to (grep { $in{$_} } sort keys %{ $graph->{$from} }) {
                my %once = map { $_ => 1 } @{ $graph->{$from}{$to} };
                print "    $from -> $to: " . join(' ', sort keys %once) . "\n";
            }
        }
    }
    return;
}

1;
