/** Reads HTTP Basic (RFC 7617). @returns empty texts for anything else */
export function readBasic(header: string | undefined): { name: string; password: string } {
  const encoded = /^basic +([A-Za-z0-9+/]+={0,2})$/i.exec(header ?? '')?.[1] ?? ''
  const [name = '', password = ''] = Buffer.from(encoded, 'base64').toString('latin1').split(':')
  return { name, password }
}
