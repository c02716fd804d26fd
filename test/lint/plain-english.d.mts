export function findUnclear(text: string, isComment: boolean): Array<{ word: string; reason: string }>
