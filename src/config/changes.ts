import type { SettingValue } from './reader.ts'

/** Formats the rows of `otpd config show`: setting, value, origin. */
export function settingRows(settings: readonly SettingValue[]): [string, string, string][] {
  return settings.map(({ setting, value, origin }) => {
    const text = Array.isArray(value) ? value.join(', ') : String(value ?? '')
    return [setting, text === '' ? '-' : text, origin]
  })
}

/** Settings that a reload applies; the others apply at the next start. */
const reloadable = /^(alerts|guard|prices|providers|routes)\.|^limits\.phoneSendBudget$/

/** Whether a reload applies the setting. */
export const isReloadable = (setting: string) => reloadable.test(setting)

/** Names the settings with another value, and those that only one list has, in the order of the later one. */
export function changedSettings(
  before: readonly SettingValue[],
  after: readonly SettingValue[],
): { setting: string; origins: string[]; isReloadable: boolean }[] {
  const [old, current] = [before, after].map((list) => new Map(list.map((one) => [one.setting, one])))
  const names = new Set([...(current?.keys() ?? []), ...(old?.keys() ?? [])])
  return [...names].flatMap((setting) => {
    const found = [old?.get(setting), current?.get(setting)]
    const [one, other] = found.map((value) => JSON.stringify(value?.value ?? null))
    if (one === other) return []
    const origins = found.map((value) => value?.origin ?? 'default')
    return [{ setting, origins, isReloadable: isReloadable(setting) }]
  })
}

/**
 * Names the settings whose values in the configuration file are others than those that a server runs with. Settings that a
 * variable or an option overrides do not count: the server may have had them too.
 */
export function changedInFile(
  file: string | null,
  served: readonly SettingValue[],
  loaded: readonly SettingValue[],
): { setting: string; isReloadable: boolean }[] {
  if (file === null) return []
  const isFromFile = (origin: string | undefined) => origin?.startsWith(`${file}:`) === true
  return changedSettings(served, loaded)
    .filter(({ origins: [before, now] }) => isFromFile(now) || (isFromFile(before) && now === 'default'))
    .map(({ setting, isReloadable }) => ({ setting, isReloadable }))
}
