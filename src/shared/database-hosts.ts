/**
 * Splits the URL of a database that names several servers (`host1:5432,host2`) into one URL for each, in their order. They
 * lack `target_session_attrs`, which the driver does not know.
 */
export function splitHosts(url: string): string[] {
  const [, before = '', hosts = '', after = ''] = /^(\w+:\/\/(?:[^/?#]*@)?)([^/?#]*)(.*)$/s.exec(url) ?? []
  const rest = after.replace(/(?<=[?&])target_session_attrs=[^&#]*&?/, '').replace(/[?&]$/, '')
  return hosts.split(',').map((host) => before + host + rest)
}

/** Finds which server the URL of a database asks for, as libpq does. */
export const targetServer = (url: string): string | undefined =>
  /[?&]target_session_attrs=([^&#]*)/.exec(url)?.[1]
