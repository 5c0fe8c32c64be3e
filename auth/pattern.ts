/**
 * Patterns, in which `*` stands for any run of characters, dots included. Matching takes the leftmost position for each piece
 * and needs no regular expression, so hostile patterns cannot make it slow.
 */

/** Returns a function that says whether a text matches. In the text a `*` is an ordinary character. */
export function matcher(pattern: string): (text: string) => boolean {
  if (!pattern.includes('*')) return (text) => text === pattern
  const pieces = pattern.split('*')
  const first = pieces[0] as string
  const last = pieces[pieces.length - 1] as string
  const middle = pieces.slice(1, -1)
  return (text) => {
    if (text.length < first.length + last.length || !text.startsWith(first) || !text.endsWith(last)) return false
    const end = text.length - last.length
    let at = first.length
    for (const piece of middle) {
      const found = text.indexOf(piece, at)
      if (found < 0 || found + piece.length > end) return false
      at = found + piece.length
    }
    return true
  }
}

/** Whether there is a text that both patterns match. */
export function overlaps(a: string, b: string): boolean {
  // reached[j]: the first i characters of `a` and the first j of `b` can match the same text.
  let reached: boolean[] = []
  for (let i = 0; i <= a.length; i++) {
    const before = reached
    reached = []
    const isStar = i > 0 && a[i - 1] === '*'
    for (let j = 0; j <= b.length; j++) {
      const alike = i > 0 && j > 0 && a[i - 1] === b[j - 1] && before[j - 1] === true
      const longer = (isStar && before[j] === true) || (j > 0 && b[j - 1] === '*' && reached[j - 1] === true)
      const eaten = (isStar && j > 0 && reached[j - 1] === true) || (j > 0 && b[j - 1] === '*' && before[j] === true)
      reached.push((i === 0 && j === 0) || alike || longer || eaten)
    }
  }
  return reached[b.length] === true
}
