tables! {
    "amd-pstate-gitsource": "rows.csv";
    "amd-pstate-speedometer": "rows.csv";
    "amd-pstate-tbench": "rows.csv";
    "cctl-i7-13620h": "rows.csv";
    "cm4-uconsole-build": "rows.csv";
    "codecarbon-load": "rows.csv";
    "epyc-7502-placement": "rows.csv";
    "epyc-7502-roco2": "rows.csv";
    "fujitsu-django-turbo": "rows.csv";
    "greenlab-deathstar": "rows.csv";
    "greenlab-deathstar-runs": "rows.csv";
    "i7-5557u-smt": "rows.csv";
    "inria-dacapo": "rows.csv";
    "inria-xeon6130-spin": "rows.csv";
    "juno-r2-eas": "rows.csv";
    "loghin-odroid-xu3": "rows.csv";
    "numpy-tasks": "rows.csv";
    "odroid-xu-eas": "rows.csv";
    "pes-cinebench": "rows.csv";
    "plenergy-i7-8700": "rows.csv";
    "power-bench-125h": "rows.csv";
    "power-bench-7640hs": "rows.csv";
    "powercap-cses": "rows.csv";
    "powercap-languages": "rows.csv";
    "qais-m1-rampup": "rows.csv";
    "raptor-lake-eas": "rows.csv";
    "repara-cores": "rows.csv";
    "repara-voltage": "rows.csv";
    "repara-workers": "rows.csv";
    "rk3588-dmc-thresholds": "rows.csv";
    "rock5b-dmc": "rows.csv";
    "rpi2b-aircrack": "rows.csv";
    "ryzen-9950x-ppt": "rows.csv";
    "smythies-i5-10600k-idle": "rows.csv";
    "smythies-i5-9600k-hwp": "rows.csv";
    "smythies-i7-2600k-gitsource": "rows.csv";
    "smythies-i7-2600k-idle": "rows.csv";
    "smythies-i7-2600k-pipe": "rows.csv";
    "strix-halo-passmark": "rows.csv";
    "suse-freq-invariance-perf": "rows.csv";
    "suse-freq-invariance-power": "rows.csv";
    "suse-gitsource-skylake": "rows.csv";
    "suse-tbench-haswell": "rows.csv";
    "turbo-sysbench": "rows.csv";
    "xeon-e3-1240lv5-powercap": "rows.csv";
    "yump-video": "rows.csv";
}

machines! {
    "amd-laptop-166"
    "desktop-4200"
    "epyc-7502-2s"
    "epyc-8024p"
    "i5-1035g1"
    "i5-10600k"
    "i5-3230m"
    "i5-4200u"
    "i5-7267u"
    "i5-9600k"
    "i7-12700h"
    "i7-13620h"
    "i7-13700k-nosmt"
    "i7-2600k"
    "i7-5557u"
    "i7-6700hq"
    "i7-8700"
    "i9-12900h"
    "i9-12900k"
    "intel-desktop"
    "intel-desktop-65w"
    "juno-r2"
    "mac-mini-m1"
    "odroid-xu"
    "raspberry-pi-2b"
    "raspberry-pi-cm4"
    "rk3588-board"
    "ryzen-5800h"
    "ryzen-5800x"
    "ryzen-5950x"
    "ryzen-7640hs"
    "ryzen-9950x"
    "ryzen-ai-max-395"
    "threadripper-1950x"
    "ultra-5-125h"
    "xeon-24core-2s"
    "xeon-32cpu-2s"
    "xeon-e3-1240lv5"
    "xeon-e3-1240v2"
    "xeon-e3-1240v5"
    "xeon-e5-2620v3-2s"
    "xeon-e5-2670v3-2s"
    "xeon-e5-2678v3-2s"
    "xeon-gold-6130-2s"
}
