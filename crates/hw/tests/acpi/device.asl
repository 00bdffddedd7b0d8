// As AMD's firmware: processors are devices.
DefinitionBlock ("device.aml", "SSDT", 2, "WATTW", "DEVC", 1)
{
    Scope (\_SB)
    {
        Device (C000)
        {
            Name (_HID, "ACPI0007")
            Name (_UID, 0)
            Name (_PSS, Package () {
                Package () { 3600, 4680, 1, 1, 0, 0 },
                Package () { 2800, 2940, 1, 1, 1, 1 },
                Package () { 2200, 2090, 1, 1, 2, 2 } })
        }
        Device (C001)
        {
            Name (_HID, "ACPI0007")
            Name (_UID, 1)
            Alias (\_SB.C000._PSS, _PSS)
            Name (_PCT, Package () {
                ResourceTemplate () { Register (SystemIO, 8, 0, 0xB2) },
                ResourceTemplate () { Register (SystemIO, 8, 0, 0xB3) } })
        }
    }
}
