/** The GSM 7-bit default alphabet in code order (3GPP TS 23.038 §6.2.1); 0x1B is the escape code. */
export const gsmAlphabet: readonly string[] = [
  ...('@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞ\x1bÆæßÉ !"#¤%&\'()*+,-./0123456789:;<=>?' +
    '¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà'),
]

export const gsmEscapeCode = 0x1b

/** The extension table (§6.2.1.1): the code that follows the escape, so each character takes two septets. */
export const gsmExtension: Readonly<Record<string, number>> = {
  '\f': 0x0a,
  '^': 0x14,
  '{': 0x28,
  '}': 0x29,
  '\\': 0x2f,
  '[': 0x3c,
  '~': 0x3d,
  ']': 0x3e,
  '|': 0x40,
  '€': 0x65,
}
