// _PSS in a Processor object, as a plain name; a neighbour returns the first one's.
DefinitionBlock ("processor.aml", "DSDT", 2, "WATTW", "PROC", 1)
{
    Name (XYZ, 5)
    OperationRegion (SPRT, SystemIO, 0xB2, 0x02)
    Field (SPRT, ByteAcc, Lock, Preserve) { SSMP, 8 }
    Method (TOOL, 2) { Store (Arg0, SSMP) Return (Add (Arg0, Arg1)) }
    Scope (\_PR)
    {
        Processor (CPU0, 0x01, 0x00000410, 0x06)
        {
            Name (_PCT, Package () {
                ResourceTemplate () { Register (FFixedHW, 0, 0, 0) },
                ResourceTemplate () { Register (FFixedHW, 0, 0, 0) } })
            Name (_PSS, Package () {
                Package () { 1700, 24500, 10, 10, 0x1029, 0x1029 },
                Package () { 1400, 15500, 10, 10, 0x0E20, 0x0E20 },
                Package () { 600, 6000, 10, 10, 0x0612, 0x0612 } })
            Name (_PSD, Package () { Package () { 5, 0, 0, 0xFC, 2 } })
            Name (_PPC, 1)
            Name (_CST, Package () { 2,
                Package () { ResourceTemplate () { Register (FFixedHW, 1, 2, 0x10, 1) }, 1, 3, 1000 },
                Package () { ResourceTemplate () { Register (SystemIO, 8, 0, 0x414) }, 2, 20, 500 } })
        }
        Processor (CPU1, 0x02, 0x00000410, 0x06)
        {
            Method (_PSS, 0) { Return (\_PR.CPU0._PSS) }
            Method (_PCT, 0) { Return (\_PR.CPU0._PCT) }
        }
    }
}
