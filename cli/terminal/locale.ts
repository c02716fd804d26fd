import type { Io } from './io.ts'

/** The terminal can show more than ASCII: its locale says so, in the order of POSIX (§8.2). */
export const isUtf8Locale = ({ LC_ALL, LC_CTYPE, LANG }: Io['env']) =>
  /utf-?8/i.test(LC_ALL || LC_CTYPE || LANG || '')
