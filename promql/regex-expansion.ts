/** What a replacement stands for, as Go's regexp.Expand has it. */
import type { CompiledRegex, RegexMatcher } from './label-matcher.ts'

/**
 * The parts of a replacement, by what the matcher has found last: `$1`, `$name`, `${1}` and `$$`. The longest name counts, and one that
 * does not exist is empty.
 */
export function expansion(replacement: string, regex: CompiledRegex, matcher: RegexMatcher): readonly string[] {
  const textOf = (group: string): string => {
    const number = /^\d+$/.test(group) ? Number(group) : regex.namedGroups()[group]
    return number === undefined || number > regex.groupCount() ? '' : (matcher.group(number) ?? '')
  }
  const parts: string[] = []
  let end = 0
  for (const { 0: found, 1: plain, 2: braced, index } of replacement.matchAll(/\$(?:\$|(\w+)|\{(\w+)\})/g)) {
    parts.push(replacement.slice(end, index), found === '$$' ? '$' : textOf(plain ?? braced ?? ''))
    end = index + found.length
  }
  return [...parts, replacement.slice(end)]
}
