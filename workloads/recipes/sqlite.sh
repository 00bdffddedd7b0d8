# A SQLite database on disk: small transactions that each wait for the disk, then queries over all rows.
# needs: sqlite3
{
    echo 'pragma journal_mode = wal; pragma synchronous = full;'
    echo 'create table sale (id integer primary key, item text, price real);'
    for n in $(seq 1200); do
        echo "begin; insert into sale (item, price) values ('item $((n * 7919 % 1009))', $n); insert into sale (item, price) select item, price + 1 from sale where id % 7 = $((n % 7)) limit 200; commit;"
    done
    for n in $(seq 20); do
        echo "select item, count(*), avg(price) from sale where price > $n group by item order by 3 desc limit 10;"
    done
} >work.sql
record -- sh -c 'sqlite3 sales.db <work.sql >/dev/null'
