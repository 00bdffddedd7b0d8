# Study 002's first test (today's cyclictest spells -y other as --policy=other).
# needs: rt-tests
record --timers -- cyclictest -q --policy=other -t 30 -i 200 -D 2
