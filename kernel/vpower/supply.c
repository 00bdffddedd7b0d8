// SPDX-License-Identifier: GPL-2.0
/* A thermal zone with one pole, a battery that the CPUs draw from, and a mains switch. */

#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/platform_device.h>
#include <linux/power_supply.h>
#include <linux/thermal.h>

#include "vpower.h"

#define AMBIENT_MC 30000
#define MC_PER_W 1500
#define TAU_MS 10000
#define BATTERY_FULL_UWH 50000000
/* 1 uWh is 3600 uJ. */
#define UJ_PER_UWH 3600

static DEFINE_MUTEX(heat_lock);
static int celsius_mc = AMBIENT_MC;
static u64 heat_uj;
static ktime_t heat_at;

static int zone_temperature(struct thermal_zone_device *tz, int *temp)
{
	u32 fixed = READ_ONCE(vpower_knobs.temp_mc);
	ktime_t now = ktime_get();
	u64 uj = vpower_energy_uj();
	s64 ms;

	mutex_lock(&heat_lock);
	ms = ktime_ms_delta(now, heat_at);
	if (ms > 0) {
		/* Microjoules a millisecond are milliwatts. */
		s64 mw = div64_u64(uj - heat_uj, ms);
		s64 towards = AMBIENT_MC + div_s64(mw * MC_PER_W, 1000);

		celsius_mc += div_s64((towards - celsius_mc) * min_t(s64, ms, TAU_MS), TAU_MS);
		heat_uj = uj;
		heat_at = now;
	}
	*temp = fixed ? (int)fixed : celsius_mc;
	mutex_unlock(&heat_lock);
	return 0;
}

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 9, 0)
static const struct thermal_zone_device_ops zone_ops = { .get_temp = zone_temperature };

static struct thermal_zone_device *zone_register(void)
{
	return thermal_tripless_zone_device_register("vpower", NULL, &zone_ops, NULL);
}
#else
static struct thermal_zone_device_ops zone_ops = { .get_temp = zone_temperature };

static struct thermal_zone_device *zone_register(void)
{
	return thermal_zone_device_register("vpower", 0, 0, NULL, &zone_ops, NULL, 0, 0);
}
#endif

/* Energy at the last unplugging, and what had been drawn by then. */
static u64 unplugged_uj;
static u64 drawn_uj;

static u64 battery_drawn_uj(void)
{
	return drawn_uj + (vpower_knobs.mains ? 0 : vpower_energy_uj() - unplugged_uj);
}

static int battery_now_uwh(void)
{
	u64 uwh = div64_u64(battery_drawn_uj(), UJ_PER_UWH);
	u32 percent = READ_ONCE(vpower_knobs.capacity);

	if (percent)
		return BATTERY_FULL_UWH / 100 * min(percent, 100U);
	return uwh >= BATTERY_FULL_UWH ? 0 : BATTERY_FULL_UWH - uwh;
}

static int battery_get(struct power_supply *psy, enum power_supply_property what,
		       union power_supply_propval *value)
{
	switch (what) {
	case POWER_SUPPLY_PROP_STATUS:
		value->intval = vpower_knobs.mains ? POWER_SUPPLY_STATUS_FULL :
						     POWER_SUPPLY_STATUS_DISCHARGING;
		return 0;
	case POWER_SUPPLY_PROP_PRESENT:
		value->intval = 1;
		return 0;
	case POWER_SUPPLY_PROP_ENERGY_FULL_DESIGN:
	case POWER_SUPPLY_PROP_ENERGY_FULL:
		value->intval = BATTERY_FULL_UWH;
		return 0;
	case POWER_SUPPLY_PROP_ENERGY_NOW:
		value->intval = battery_now_uwh();
		return 0;
	case POWER_SUPPLY_PROP_CAPACITY:
		value->intval = battery_now_uwh() / (BATTERY_FULL_UWH / 100);
		return 0;
	default:
		return -EINVAL;
	}
}

static int mains_get(struct power_supply *psy, enum power_supply_property what,
		     union power_supply_propval *value)
{
	if (what != POWER_SUPPLY_PROP_ONLINE)
		return -EINVAL;
	value->intval = vpower_knobs.mains;
	return 0;
}

static enum power_supply_property battery_properties[] = {
	POWER_SUPPLY_PROP_STATUS, POWER_SUPPLY_PROP_PRESENT, POWER_SUPPLY_PROP_ENERGY_FULL_DESIGN,
	POWER_SUPPLY_PROP_ENERGY_FULL, POWER_SUPPLY_PROP_ENERGY_NOW, POWER_SUPPLY_PROP_CAPACITY,
};
static enum power_supply_property mains_properties[] = { POWER_SUPPLY_PROP_ONLINE };

static const struct power_supply_desc battery_desc = {
	.name = "BAT0",
	.type = POWER_SUPPLY_TYPE_BATTERY,
	.properties = battery_properties,
	.num_properties = ARRAY_SIZE(battery_properties),
	.get_property = battery_get,
};
static const struct power_supply_desc mains_desc = {
	.name = "AC",
	.type = POWER_SUPPLY_TYPE_MAINS,
	.properties = mains_properties,
	.num_properties = ARRAY_SIZE(mains_properties),
	.get_property = mains_get,
};

static struct platform_device *board;
static struct thermal_zone_device *zone;
static struct power_supply *battery, *mains;

void vpower_supply_changed(void)
{
	u64 uj = vpower_energy_uj();

	/* The knob is already turned: what was drawn on battery so far is booked, or a new stretch begins. */
	if (vpower_knobs.mains && unplugged_uj)
		drawn_uj += uj - unplugged_uj;
	unplugged_uj = vpower_knobs.mains ? 0 : uj;
	power_supply_changed(mains);
	power_supply_changed(battery);
}

int vpower_supply_init(void)
{
	int err;

	heat_at = ktime_get();
	heat_uj = vpower_energy_uj();
	board = platform_device_register_simple("vpower", PLATFORM_DEVID_NONE, NULL, 0);
	if (IS_ERR(board))
		return PTR_ERR(board);
	zone = zone_register();
	if (IS_ERR(zone)) {
		err = PTR_ERR(zone);
		goto no_zone;
	}
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 9, 0)
	err = thermal_zone_device_enable(zone);
	if (err)
		goto no_battery;
#endif
	battery = power_supply_register(&board->dev, &battery_desc, NULL);
	if (IS_ERR(battery)) {
		err = PTR_ERR(battery);
		goto no_battery;
	}
	mains = power_supply_register(&board->dev, &mains_desc, NULL);
	if (IS_ERR(mains)) {
		err = PTR_ERR(mains);
		goto no_mains;
	}
	return 0;

no_mains:
	power_supply_unregister(battery);
no_battery:
	thermal_zone_device_unregister(zone);
no_zone:
	platform_device_unregister(board);
	return err;
}

void vpower_supply_exit(void)
{
	power_supply_unregister(mains);
	power_supply_unregister(battery);
	thermal_zone_device_unregister(zone);
	platform_device_unregister(board);
}
