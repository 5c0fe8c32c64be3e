import { expect, test } from 'vitest'
import { keyLines } from '../../../../server/kernel/config/file.ts'

test('keys are found on the line where their statement begins', () => {
  const lineOf = keyLines(`# a = 1
[one] # comment
a = 1
"b" = 2`)
  expect(lineOf('one')).toBe(2)
  expect(lineOf('one', 'a')).toBe(3)
  expect(lineOf('one', 'b')).toBe(4)
  expect(lineOf('a')).toBeUndefined()
})

test('what looks like a key inside a string or a list is none', () => {
  const lineOf = keyLines(`[one]
text = """
[two]
b = 1
"""
list = [
  "c = 1", # ]
  "d",
]
c = 3`)
  expect(lineOf('one', 'text')).toBe(2)
  expect(lineOf('one', 'list')).toBe(6)
  expect(lineOf('one', 'c')).toBe(10)
  expect(lineOf('two')).toBeUndefined()
  expect(lineOf('one', 'b')).toBeUndefined()
})

test('every way to write a key is understood', () => {
  const lineOf = keyLines(
    'one.a = 1\ntwo = { a = 1 }\r\n[ "three" ]\r\n\'a\' = 1\n"b.c" = 1\n[four.a]\nx = 1\n[[five]]\n',
  )
  expect([lineOf('one', 'a'), lineOf('two', 'a'), lineOf('three'), lineOf('three', 'a')]).toEqual([1, 2, 3, 4])
  expect([lineOf('three', 'b.c'), lineOf('four', 'a'), lineOf('five')]).toEqual([5, 6, 8])
})

test('a section that is opened twice keeps its first line, its keys their own', () => {
  const lineOf = keyLines('[one.x]\na = 1\n[one]\nb = 1\n')
  expect([lineOf('one'), lineOf('one', 'x'), lineOf('one', 'b')]).toEqual([1, 1, 4])
})
