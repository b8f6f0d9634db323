# bytes share
1000 0
2000,0.5
4000 1
