import { isLoopback } from './loopback.ts'

/**
 * Tells whether secrets may be sent to a URL: https, or http on loopback, and no user name or password in it. The path,
 * the query and the fragment are not checked.
 */
export function isSafeUrl(text: string): boolean {
  const url = URL.parse(text)
  if (url === null || url.username !== '' || url.password !== '') return false
  return url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url.hostname))
}
