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

it('comes for all selections at once', () => {
  news.follow(1, { news: () => newsOf([7, 10, 0.5], [8, 11, 1.5]) })
  news.follow(2, { news: () => newsOf() })
  news.follow(3, { news: () => newsOf([7, 10, 2.5]) })
  news.handle([3, 2, 1])
  const columns = Float64Array.of(7, 7, 8, 10, 10, 11, 2.5, 0.5, 1.5)
  expect(answers).toEqual([{ kind: 'news', follows: [3, 2, 1], counts: [1, 0, 2], columns }])
  expect(later).toEqual([])
})

it('says which have to be read anew, and knows these no more', () => {
  let isLost = true
  news.follow(1, { news: () => (isLost ? undefined : newsOf()) })
  news.handle([1, 2])
  isLost = false
  news.handle([1])
  expect(answers.map(({ counts }) => counts)).toEqual([[ANEW, ANEW], [ANEW]])
})

it('comes in slices, between which others have their turn', () => {
  for (const number of [1, 2, 3])
    news.follow(number, {
      news: () => {
        nowMs += 20
        return newsOf([number, 0, 0])
      },
    })
  news.handle([1, 2, 3])
  for (let act = later.shift(); act !== undefined; act = later.shift()) act()
  expect(answers.map(({ follows }) => follows)).toEqual([[1], [2], [3]])
})

it('has at most so many samples, but for those of one selection', () => {
  const many = newsOf(...Array.from({ length: 20_000 }, () => [1, 2, 3] as const))
  for (const number of [1, 2]) news.follow(number, { news: () => many })
  news.handle([1, 2])
  expect([answers.map(({ follows }) => follows), later.length]).toEqual([[[1]], 1])
})
