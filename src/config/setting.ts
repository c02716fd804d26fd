/** Description of one setting: its names, kind and default. */
export type Setting = {
  /** Name in `otpd config show`, and key in the file unless `notInFile`. */
  name: string
  /** `text` is a single value of any form; a `list` is comma-separated, in the file an array of strings. */
  kind: 'text' | 'integer' | 'switch' | 'list'
  variable: string
  flag?: string
  notInFile?: true
  secret?: true
  /** The default in words. */
  default: string
  description: string
}
