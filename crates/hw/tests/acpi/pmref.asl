// As the power management SSDTs of notebooks: lists in a Scope, a method that chooses.
DefinitionBlock ("pmref.aml", "SSDT", 2, "WATTW", "PMREF", 1)
{
    External (\_PR.CPU0, DeviceObj)
    External (\_PR.CPU1, DeviceObj)
    External (OSYS, IntObj)
    External (CFGD, IntObj)
    Scope (\_PR.CPU0)
    {
        Name (LPSS, Package () {
            Package () { 2501, 35000, 10, 10, 0x2000, 0x2000 },
            Package () { 800, 9000, 10, 10, 0x0800, 0x0800 } })
        Name (TPSS, Package () {
            Package () { 2501, 35000, 10, 10, 0x2000, 0x2000 },
            Package () { 2500, 35000, 10, 10, 0x1900, 0x1900 },
            Package () { 800, 9000, 10, 10, 0x0800, 0x0800 },
            Package () { 0x80000000, 0x80000000, 0x80000000, 0x80000000, 0x80000000, 0x80000000 } })
        Name (SPSS, Package () {})
        Method (_PSS, 0, NotSerialized)
        {
            If (LGreaterEqual (OSYS, 0x07DC))
            {
                If (And (CFGD, 0x08)) { Store (\_PR.CPU0.LPSS, Local0) Return (TPSS) }
                Return (TPSS)
            }
            Return (LPSS)
        }
        Method (_PPC, 0) { Return (Zero) }
        Name (TSMF, Package () {
            Package () { 100, 1000, 0, 0, 0 },
            Package () { 88, 875, 0, 0x1E, 0 },
            Package () { 50, 500, 0, 0x18, 0 } })
        Method (_TSS, 0) { If (CFGD) { Return (TSMF) } Return (Package () { Package () { 100, 1000, 0, 0, 0 } }) }
        Method (_TSD, 0) { Return (Package () { Package () { 5, 0, 0, 0xFD, 4 } }) }
    }
    If (LNotEqual (OSYS, Zero))
    {
        Scope (\_PR.CPU1) { Method (_PSS, 0) { Return (\_PR.CPU0._PSS ()) } }
    }
}
