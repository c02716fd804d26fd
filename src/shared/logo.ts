/** Characters of a logo as a data URL: a little less than 24 KiB of image. */
export const logoCharactersMax = 32 * 1024
