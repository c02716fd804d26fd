// Rules for text that others than the operator bring into a message. Its readers trust the sender of the message.

/**
 * Matches text that phones show as a link: a scheme, or a word with a dot and two letters after it. A placeholder next to
 * the dot may become such a word.
 */
export const links = /:\/\/|[\p{L}\p{M}\p{Nd}}]\.(?:\p{L}{2}|\{)/u

/** Matches five digits or more, also with separators between them: phones and readers may take them for the code, or call them. */
export const longNumber = /\p{Nd}(?:[\s.,()'·+-]*\p{Nd}){4,}/u

/** Matches marks that change the direction of what follows (UAX #9), and can hide what a text says. */
export const directionMarks = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/u

/** Matches characters that show nothing. Some are letters, such as the Hangul filler. */
export const invisible = /\p{Default_Ignorable_Code_Point}/u

/** Removes the characters that show nothing, so that they hide neither a link nor a number. */
export const shownText = (text: string) => text.replaceAll(new RegExp(invisible, 'gu'), '')
