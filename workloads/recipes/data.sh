# A table of a million rows, read from CSV, grouped, joined and written by pandas.
# needs: python3-venv
python3 -m venv environment
environment/bin/pip install --quiet pandas==2.3.3
cat >work.py <<'PYTHON'
import pandas
sales = pandas.read_csv("sales.csv")
by_item = sales.groupby("item").agg(count=("price", "size"), mean=("price", "mean"), most=("price", "max"))
joined = sales.merge(by_item, on="item")
joined["above"] = joined.price > joined["mean"]
joined.pivot_table(index="shop", columns="above", values="price", aggfunc="sum").to_csv("out.csv")
PYTHON
awk 'BEGIN { print "item,shop,price"; for (n = 0; n < 1000000; n++) print "item " n * 7919 % 5003 "," n * 31 % 97 "," n * 13 % 1009 }' >sales.csv
record -- environment/bin/python work.py
