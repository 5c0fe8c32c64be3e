/** What has come of selections, as the thread of the history says it. */
import { beforeEach, expect, it } from 'vitest'
import { ANEW, type NewsAnswer } from '../../../../server/wings/history/messages.ts'
import { ThreadNews } from '../../../../server/wings/history/news.ts'
import type { HistoryNews } from '../../../../storage/history/store.ts'

let answers: NewsAnswer[]
let later: (() => void)[]
let nowMs: number
let news: ThreadNews

beforeEach(() => {
  answers = []
  later = []
  nowMs = 0
  news = new ThreadNews({
    answer: (answer, [buffer]) => void answers.push(structuredClone(answer, { transfer: [buffer as ArrayBuffer] })),
    later: (act) => void later.push(act),
    monotonicMs: () => nowMs,
  })
})

const newsOf = (...samples: readonly (readonly [place: number, timeMs: number, value: number])[]): HistoryNews => ({
  places: Float64Array.from(samples, ([place]) => place),
  times: Float64Array.from(samples, ([, timeMs]) => timeMs),
  values: Float64Array.from(samples, ([, , value]) => value),
})

const follow = (number: number, come: () => HistoryNews | undefined): void =>
  news.follow(number, { news: come, found() {} })
const ask = (follows: readonly number[], over: readonly number[] = []): void => news.handle({ follows, over })

it('comes for all selections at once', () => {
  follow(1, () => newsOf([7, 10, 0.5], [8, 11, 1.5]))
  follow(2, () => newsOf())
  follow(3, () => newsOf([7, 10, 2.5]))
  ask([3, 2, 1])
  const columns = Float64Array.of(7, 7, 8, 10, 10, 11, 2.5, 0.5, 1.5)
  expect(answers).toEqual([{ kind: 'news', follows: [3, 2, 1], counts: [1, 0, 2], columns }])
  expect(later).toEqual([])
})

it('says which have to be read anew, and knows these no more', () => {
  let isLost = true
  follow(1, () => (isLost ? undefined : newsOf()))
  ask([1, 2])
  isLost = false
  ask([1])
  expect(answers.map(({ counts }) => counts)).toEqual([[ANEW, ANEW], [ANEW]])
})

it('comes in slices, between which others have their turn', () => {
  for (const number of [1, 2, 3])
    follow(number, () => {
      nowMs += 20
      return newsOf([number, 0, 0])
    })
  ask([1, 2, 3])
  for (let act = later.shift(); act !== undefined; act = later.shift()) act()
  expect(answers.map(({ follows }) => follows)).toEqual([[1], [2], [3]])
})

it('has at most so many samples, but for those of one selection', () => {
  const many = newsOf(...Array.from({ length: 20_000 }, () => [1, 2, 3] as const))
  for (const number of [1, 2]) follow(number, () => many)
  ask([1, 2])
  expect([answers.map(({ follows }) => follows), later.length]).toEqual([[[1]], 1])
})

it('is nothing of a selection that is over, and nothing is answered to that alone', () => {
  for (const number of [1, 2]) follow(number, () => newsOf())
  ask([], [1])
  expect([answers, later]).toEqual([[], []])
  ask([1, 2])
  expect(answers.map(({ counts }) => counts)).toEqual([[ANEW, 0]])
})
