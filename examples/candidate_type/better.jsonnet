{type: 'function', call: 'scores.noisy', arguments: {gain: 0.1}}
